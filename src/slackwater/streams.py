"""What users write: streams, keyed streams, windows and outputs.

Everything here is a frozen definition that never touches Spark. A method returns a new definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import polars as pl

from slackwater.aggregates.base import Aggregate
from slackwater.errors import refuse
from slackwater.formats.base import Format
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.ground.durations import Duration, duration_ms
from slackwater.ground.expressions import Expression, as_expr, as_written, check_column_name
from slackwater.planning.row_functions import (
    Decode,
    FrameFunction,
    Map,
    RowOp,
    Rule,
    Select,
    TakeTime,
    Validate,
    Where,
    WithColumns,
)
from slackwater.sinks.base import DROP, Sink
from slackwater.sources.base import Source
from slackwater.triggers import Trigger, after_watermark
from slackwater.windows import Window
from slackwater.windows.spec import Accumulation, Semantics

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def stream(name: str, source: Source) -> Stream:
    """Create a stream: `stream("orders", sources.log("data/orders"))`. The name identifies its state."""
    name = checked_name(name, "stream")
    if not isinstance(source, Source):
        raise refuse("NOT_A_SOURCE", stream=name, got=repr(source))
    return Stream(name=name, origin=source)


def checked_name(name: str, what: str) -> str:
    """Return `name` if it can stand in file names, state and metrics."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refuse("BAD_NAME", what=what, got=repr(name))
    return name


@dataclass(frozen=True, kw_only=True, eq=False)
class Output:
    """One way out of the pipeline: rows, results, late rows or dead letters; it ends in `.to` or `.drop`."""

    of: Stream | Step
    kind: Literal["rows", "late", "dead_letters"]

    def to(self, sink: Sink) -> Ended:
        """Write this output to `sink`."""
        if not isinstance(sink, Sink):
            raise refuse("NOT_A_SINK", got=repr(sink))
        return Ended(output=self, sink=sink)

    def drop(self) -> Ended:
        """Discard these rows explicitly; they are still counted."""
        return Ended(output=self, sink=DROP)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ended:
    """An output and the sink it ends in."""

    output: Output
    sink: Sink


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Rows that flow: from a source, or out of a keyed step, through row functions."""

    name: str
    origin: Source | Step
    ops: tuple[RowOp, ...] = ()

    def _then(self, op: RowOp) -> Stream:
        return replace(self, ops=(*self.ops, op))

    def decode(self, format: Format) -> Stream:  # noqa: A002  the word users expect
        """Decode the bytes of each record into columns; records that fail become dead letters."""
        if not isinstance(format, Format):
            raise refuse("NOT_A_FORMAT", stream=self.name, got=repr(format))
        return self._then(Decode(format=format))

    def event_time(
        self,
        column_or_expr: Expression,
        *,
        out_of_orderness: Duration = "0s",
        idle_after: Duration | None = None,
        when_all_idle: Literal["wait", "advance"] = "wait",
        max_ahead: Duration | None = None,
    ) -> Stream:
        """Take the event time from a timestamp column, an integer column (epoch milliseconds) or an expression.

        The watermark trails the largest event time by `out_of_orderness`. A partition without a usable row for
        `idle_after` is idle and no longer holds back the watermark. While all partitions are idle, the watermark
        waits or, with `when_all_idle="advance"`, advances at the pace of the clock, so that windows close. A row more
        than `max_ahead` ahead of processing time is a dead letter, so one fast clock cannot make correct rows late.
        """
        if when_all_idle not in ("wait", "advance"):
            raise refuse("WHEN_ALL_IDLE", got=repr(when_all_idle))
        if when_all_idle == "advance" and idle_after is None:
            raise refuse("WHEN_ALL_IDLE_NEVER")
        return self._then(
            TakeTime(
                clock="event",
                expression=as_expr(column_or_expr),
                said=as_written(column_or_expr),
                out_of_orderness_ms=duration_ms(out_of_orderness, what="`out_of_orderness`", least_ms=0),
                idle_after_ms=None if idle_after is None else duration_ms(idle_after, what="`idle_after`"),
                goes_on_when_idle=when_all_idle == "advance",
                max_ahead_ms=None if max_ahead is None else duration_ms(max_ahead, what="`max_ahead`", least_ms=0),
            )
        )

    def ingestion_time(self, *, out_of_orderness: Duration = "0s", idle_after: Duration | None = None) -> Stream:
        """Use the time at which the log received the row. Results then depend on the transport."""
        return self._then(
            TakeTime(
                clock="ingestion",
                out_of_orderness_ms=duration_ms(out_of_orderness, what="`out_of_orderness`", least_ms=0),
                idle_after_ms=None if idle_after is None else duration_ms(idle_after, what="`idle_after`"),
            )
        )

    def processing_time(self) -> Stream:
        """Use the time at which the row is processed. A replay then gives different results."""
        return self._then(TakeTime(clock="processing"))

    def where(self, predicate: Expression) -> Stream:
        """Keep the rows for which `predicate` is true: `where("status <> 'cancelled'")`."""
        return self._then(Where(predicate=as_expr(predicate), said=as_written(predicate)))

    def with_columns(self, *expressions: pl.Expr, **named: Expression) -> Stream:
        """Add or replace columns: `with_columns(total="price * quantity")`."""
        if not expressions and not named:
            raise refuse("STEP_WITHOUT_COLUMNS", step=f"{self.name}.with_columns")
        return self._then(WithColumns(expressions=_expressions(expressions, named), said=_written(expressions, named)))

    def select(self, *expressions: Expression, **named: Expression) -> Stream:
        """Keep only these columns: `select("user_id", cents="amount * 100")`."""
        if not expressions and not named:
            raise refuse("STEP_WITHOUT_COLUMNS", step=f"{self.name}.select")
        return self._then(Select(expressions=_expressions(expressions, named), said=_written(expressions, named)))

    def map(self, function: FrameFunction, *, output: SchemaSpec | None = None) -> Stream:
        """Apply `function` to Polars frames; rows on which it fails become dead letters.

        It receives chunks of arbitrary size, and must treat each row independently. The result's columns are
        determined by calling it on an empty frame, unless `output` declares them. A function that adds or removes
        rows must keep the columns whose names start with `__`.
        """
        if not callable(function):
            raise refuse("MAP_FUNCTION", got=repr(function))
        return self._then(Map(function=function, schema=None if output is None else as_schema(output)))

    def validate(self, **rules: Expression) -> Stream:
        """Send rows that break a rule to the dead letters: `validate(positive="amount > 0")`."""
        if not rules:
            raise refuse("VALIDATE_EMPTY", step=f"{self.name}.validate")
        given = (Rule(name=name, predicate=as_expr(rule), said=as_written(rule)) for name, rule in rules.items())
        return self._then(Validate(rules=tuple(given)))

    def key_by(self, *keys: str) -> KeyedStream:
        """Key the stream by one or more columns; only keyed streams keep state."""
        if not keys or not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
            raise refuse("KEY_COLUMNS", stream=self.name, got=list(keys))
        return KeyedStream(stream=self, keys=keys)

    def to(self, sink: Sink) -> Ended:
        """Write the rows of this stream to `sink`."""
        return Output(of=self, kind="rows").to(sink)

    @property
    def dead_letters(self) -> Output:
        """The records of this stream that could not be decoded, failed a rule, or have no usable time."""
        return Output(of=self, kind="dead_letters")


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyedStream:
    """A stream and its key."""

    stream: Stream
    keys: tuple[str, ...]

    def window(
        self,
        window: Window,
        *,
        allowed_lateness: Duration = "0s",
        trigger: Trigger | None = None,
        accumulation: Accumulation = "accumulating",
        semantics: Semantics | None = None,
        name: str | None = None,
    ) -> WindowedStream:
        """Assign each key's rows to windows.

        A row that arrives after its windows are complete, but within `allowed_lateness`, makes them fire again; after
        that it goes to the `late` output.
        """
        if not isinstance(window, Window):
            raise refuse("NOT_A_WINDOW", got=repr(window))
        if accumulation not in ("discarding", "accumulating", "retracting"):
            raise refuse("ACCUMULATION", got=repr(accumulation))
        trigger = after_watermark() if trigger is None else trigger
        if not isinstance(trigger, Trigger):
            raise refuse("NOT_A_TRIGGER", got=repr(trigger))
        if semantics is not None and not isinstance(semantics, Semantics):
            raise refuse("NOT_SEMANTICS", got=repr(semantics))
        window.check_options(trigger, accumulation)
        return WindowedStream(
            keyed=self,
            window=window,
            lateness_ms=duration_ms(allowed_lateness, what="`allowed_lateness`", least_ms=0),
            trigger=trigger,
            accumulation=accumulation,
            semantics=semantics or Semantics(),
            name=checked_name(f"{self.stream.name}.window" if name is None else name, "step"),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowedStream:
    """A keyed stream in windows; call `aggregate` to compute results."""

    keyed: KeyedStream
    window: Window
    lateness_ms: int
    trigger: Trigger
    accumulation: Accumulation
    semantics: Semantics
    name: str

    def aggregate(self, **aggregates: Aggregate) -> Results:
        """Compute aggregates per key and window: `aggregate(orders=count(), revenue=sum("amount"))`."""
        if not aggregates:
            raise refuse("AGGREGATE_EMPTY", step=self.name)
        for alias, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise refuse("NOT_AN_AGGREGATE", step=self.name, alias=alias, got=repr(aggregate))
        step = Step(windowed=self, aggregates=aggregates)
        return Results(name=self.name, origin=step)


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One keyed step: a windowed aggregation."""

    windowed: WindowedStream
    aggregates: Mapping[str, Aggregate]

    @property
    def name(self) -> str:
        """The step's stable name; its state is kept under it."""
        return self.windowed.name


@dataclass(frozen=True, kw_only=True, eq=False)
class Results(Stream):
    """What a keyed step shows: a stream again, and the rows that came too late for it."""

    @property
    def late(self) -> Output:
        """The rows that arrived after all their windows were forgotten."""
        assert isinstance(self.origin, Step)
        return Output(of=self.origin, kind="late")


def _expressions(positional: tuple[Expression, ...], named: Mapping[str, Expression]) -> tuple[pl.Expr, ...]:
    for name in named:
        check_column_name(name)
    return (*map(as_expr, positional), *(as_expr(expr).alias(name) for name, expr in named.items()))


def _written(positional: tuple[Expression, ...], named: Mapping[str, Expression]) -> str:
    return ", ".join([*map(as_written, positional), *(f"{name} = {as_written(expr)}" for name, expr in named.items())])
