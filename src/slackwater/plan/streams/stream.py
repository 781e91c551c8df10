"""Streams of rows, from a source or a keyed step, and the outputs of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from slackwater.base.call_sites import remember
from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import refuse
from slackwater.base.expressions import Expression, as_expr, as_written, check_column_name
from slackwater.base.html import facts_table
from slackwater.base.names import checked_name
from slackwater.connectors.sink import DROP, Sink
from slackwater.connectors.source import Source
from slackwater.formats.base import Format
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.operators.step import StepDefinition
from slackwater.plan.enriching import Enriching
from slackwater.plan.row_functions import (
    Decode,
    FrameFunction,
    Map,
    RowCondition,
    RowOp,
    Select,
    TakeTime,
    Validate,
    Where,
    WithColumns,
)
from slackwater.plan.streams.foreign_calls import Hinting

if TYPE_CHECKING:
    from slackwater.plan.streams.keyed import KeyedStream, Results

_SHOWN: Final = 80
"""The longest text of a wrong argument that an error shows."""


def stream(name: str, source: Source) -> Stream:
    """Create a stream: `stream("orders", sources.log("data/orders"))`. The name identifies its state."""
    name = checked_name(name, "stream")
    if not isinstance(source, Source):
        raise refuse("NOT_A_SOURCE", stream=name, got=_brief(source))
    return Stream(name=name, origin=remember(source))


def _brief(value: object) -> str:
    """Return a value in one line: its type alone if it is a table or a long text."""
    text = repr(value)
    return text if len(text) <= _SHOWN and "\n" not in text else f"`{type(value).__module__}.{type(value).__name__}`"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Output(Hinting, kind="an output"):
    """An output of the pipeline: rows, results, late rows or dead letters; it must end in `.to` or `.drop`."""

    of: Stream | Step
    kind: Literal["rows", "late", "dead_letters"]

    @property
    def name(self) -> str:
        """The output's name for late rows and dead letters; the planner names outputs of rows."""
        owner = self.of.origin if isinstance(self.of, Stream) and isinstance(self.of.origin, Step) else self.of
        return f"{owner.name}.{self.kind}"

    def __repr__(self) -> str:
        return f"<Output {self.name}>"

    def to(self, sink: Sink) -> Ended:
        """Write this output to `sink`."""
        if not isinstance(sink, Sink):
            raise refuse("NOT_A_SINK", got=repr(sink))
        return remember(Ended(output=self, sink=sink))

    def drop(self) -> Ended:
        """Discard these rows explicitly; they are still counted."""
        return remember(Ended(output=self, sink=DROP))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ended:
    """An output and the sink it ends in."""

    output: Output
    sink: Sink

    def __repr__(self) -> str:
        return f"<Output {self.output.name} to {self.sink}>"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Stream(Hinting, Enriching, kind="a stream"):
    """A stream of rows from a source or a keyed step, passed through row functions."""

    name: str
    origin: Source | Step | Union
    ops: tuple[RowOp, ...] = ()
    side: str = ""
    """The name of the step's other output that the rows come from; empty for its results."""

    def __repr__(self) -> str:
        from slackwater.plan.streams.shown import columns_text  # noqa: PLC0415  it needs this module

        return f"<{type(self).__name__} {self.name}: {columns_text(self)}>"

    def _repr_html_(self) -> str:
        """Return the origin and the columns for display in a notebook."""
        from slackwater.plan.streams.shown import facts_of  # noqa: PLC0415  as above

        return facts_table(f"{type(self).__name__} {self.name}", facts_of(self))

    def _then(self, op: RowOp) -> Stream:
        return replace(self, ops=(*self.ops, remember(op)))

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
        max_drift: Duration | None = None,
    ) -> Stream:
        """Take the event time from a timestamp column, an integer column (epoch milliseconds) or an expression.

        The watermark trails the largest event time by `out_of_orderness`. A partition without a usable row for
        `idle_after` is idle and no longer holds back the watermark. While all partitions are idle, the watermark
        waits or, with `when_all_idle="advance"`, advances at the pace of the clock, so that windows close. A row more
        than `max_ahead` ahead of processing time is a dead letter, so one fast clock cannot make correct rows late.
        While the watermark is more than `max_drift` ahead of that of another input of the same step, such as a join,
        the stream is not read: its rows wait in the log, not in the state.
        """
        if when_all_idle not in ("wait", "advance"):
            raise refuse("WHEN_ALL_IDLE", got=repr(when_all_idle))
        if when_all_idle == "advance" and idle_after is None:
            raise refuse("WHEN_ALL_IDLE_NEVER")
        return self._then(
            TakeTime(
                clock="event",
                expression=as_expr(column_or_expr),
                written=as_written(column_or_expr),
                out_of_orderness_ms=duration_ms(out_of_orderness, what="`out_of_orderness`", least_ms=0),
                idle_after_ms=None if idle_after is None else duration_ms(idle_after, what="`idle_after`"),
                goes_on_when_idle=when_all_idle == "advance",
                max_ahead_ms=None if max_ahead is None else duration_ms(max_ahead, what="`max_ahead`", least_ms=0),
                max_drift_ms=None if max_drift is None else duration_ms(max_drift, what="`max_drift`", least_ms=0),
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
        """Use the time at which the row is processed. A new run over the same data then gives different results."""
        return self._then(TakeTime(clock="processing"))

    def where(self, predicate: Expression) -> Stream:
        """Keep the rows for which `predicate` is true: `where("status <> 'cancelled'")`."""
        return self._then(Where(predicate=as_expr(predicate), written=as_written(predicate)))

    def with_columns(self, *expressions: pl.Expr, **named: Expression) -> Stream:
        """Add or replace columns: `with_columns(total="price * quantity")`."""
        if not expressions and not named:
            raise refuse("STEP_WITHOUT_COLUMNS", step=f"{self.name}.with_columns")
        written = _written(expressions, named)
        return self._then(WithColumns(expressions=_expressions(expressions, named), written=written))

    def select(self, *expressions: Expression, **named: Expression) -> Stream:
        """Keep only these columns: `select("user_id", cents="amount * 100")`."""
        if not expressions and not named:
            raise refuse("STEP_WITHOUT_COLUMNS", step=f"{self.name}.select")
        return self._then(Select(expressions=_expressions(expressions, named), written=_written(expressions, named)))

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
        given = (
            RowCondition(name=name, predicate=as_expr(rule), written=as_written(rule)) for name, rule in rules.items()
        )
        return self._then(Validate(rules=tuple(given)))

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """Merge several streams with equal columns into one stream.

        Each stream keeps its own event time, and its partitions their own clocks; a keyed step uses the smallest
        watermark. Rows that fail after the union are dead letters of the stream they came from. Where rows are sorted
        by event time, ties are broken by the name of the partition, then of the stream, then by offset.
        """
        if not others or not all(isinstance(other, Stream) for other in others):
            raise refuse("UNION_STREAMS", stream=self.name, got=[called(other) for other in others])
        name = checked_name(f"{self.name}.union" if name is None else name, "stream")
        union = Stream(name=name, origin=remember(Union(streams=(self, *others))))
        ways = [(branch.name, id(branch.origin), branch.ops) for branch in branches(union)]
        for number, way in enumerate(ways):
            if way in ways[:number]:
                raise refuse("UNION_TWICE", stream=name, got=way[0])
        return union

    def key_by(self, *keys: str, spread: int = 1) -> KeyedStream:
        """Key the stream by one or more columns; only keyed streams keep state.

        With `spread`, the partial aggregates of one key are first merged in up to that many key groups, and then in the
        key's own group. Use it to aggregate few, very large keys in large batches.
        """
        if not keys or not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
            raise refuse("KEY_COLUMNS", stream=self.name, got=list(keys))
        if isinstance(spread, bool) or not isinstance(spread, int) or spread < 1:
            raise refuse("KEY_SPREAD", stream=self.name, got=repr(spread))
        from slackwater.plan.streams.keyed import KeyedStream  # noqa: PLC0415  it imports this module

        return remember(KeyedStream(stream=self, keys=keys, spread=spread))

    def versions(self) -> KeyedStream:
        """Turn a stream of Debezium changes into versions of the table's rows, for `join_as_of`.

        Versions are keyed by the format's `key` and have the columns of the table; a delete ends the previous version.
        A stream without an event time uses `source_time`. Tombstones, messages and schema changes are filtered out; a
        truncate is a dead letter, because it does not name the rows it deletes.
        """
        from slackwater.plan.streams.versions import versions_of  # noqa: PLC0415  as above

        return versions_of(self)

    def attach(
        self,
        branch: Stream,
        *,
        on: str | Sequence[str],
        suffixes: tuple[str, str] = ("", "_right"),
        name: str | None = None,
    ) -> Results:
        """Attach what a branch of the same stream has computed to the rows it was computed from: `on="payment"`.

        Each row gets the columns of the branch's row with the same `on` columns and the same event time. It is emitted
        when that row arrives, once for each if there are several; or with nulls, when none can arrive any more. Rows of
        the branch without a row of this stream are left out. It is a left interval join of no width, and has its
        outputs.
        """
        from slackwater.plan.streams.attaching import attached  # noqa: PLC0415  as above

        return attached(self, branch, on, suffixes, name)

    def to(self, sink: Sink) -> Ended:
        """Write the rows of this stream to `sink`."""
        return Output(of=self, kind="rows").to(sink)

    @property
    def dead_letters(self) -> Output:
        """The records of this stream that could not be decoded, failed a rule, or have no usable time."""
        if isinstance(self.origin, Union):
            streams = ", ".join(dict.fromkeys(branch.name for branch in branches(self)))
            raise refuse("UNION_DEAD_LETTERS", stream=self.name, streams=streams)
        return Output(of=self, kind="dead_letters")


@dataclass(frozen=True, kw_only=True, eq=False)
class Union:
    """The union of several streams."""

    streams: tuple[Stream, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Branch:
    """One path on which rows enter a stream: its origin, and the row functions along it."""

    name: str
    origin: Source | Step
    side: str
    ops: tuple[RowOp, ...]


def branches(stream: Stream) -> list[Branch]:
    """Return the paths on which rows enter `stream`: one, unless it is a union."""
    if not isinstance(stream.origin, Union):
        return [Branch(name=stream.name, origin=stream.origin, side=stream.side, ops=stream.ops)]
    found = [branch for each in stream.origin.streams for branch in branches(each)]
    return [replace(branch, ops=(*branch.ops, *stream.ops)) for branch in found]


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """A keyed step: what it computes, and the keyed stream at each of its ports."""

    name: str
    """The step's stable name, which identifies its state."""
    definition: StepDefinition
    inputs: Mapping[str, KeyedStream]


def called(stream: object) -> str:
    """Return the name, in messages, of something that should be a stream."""
    return stream.name if isinstance(stream, Stream) else repr(stream)


def _expressions(positional: tuple[Expression, ...], named: Mapping[str, Expression]) -> tuple[pl.Expr, ...]:
    for name in named:
        check_column_name(name)
    return (*map(as_expr, positional), *(as_expr(expr).alias(name) for name, expr in named.items()))


def _written(positional: tuple[Expression, ...], named: Mapping[str, Expression]) -> str:
    return ", ".join([*map(as_written, positional), *(f"{name} = {as_written(expr)}" for name, expr in named.items())])
