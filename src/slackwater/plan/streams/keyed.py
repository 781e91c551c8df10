"""Keyed streams, the steps that can be applied to them, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from slackwater.base.call_sites import remember
from slackwater.base.durations import Duration, Forever, duration_ms
from slackwater.base.errors import near_miss, refuse
from slackwater.base.expressions import Expression
from slackwater.base.html import facts_table
from slackwater.base.names import checked_name
from slackwater.formats.schemas import SchemaSpec
from slackwater.operators.aggregates.base import Aggregate
from slackwater.operators.deduplication.definition import DeduplicateDefinition
from slackwater.operators.deduplication.spec import DUPLICATES, Keep
from slackwater.operators.joins.as_of import as_of_join
from slackwater.operators.joins.columns import LEFT, RIGHT
from slackwater.operators.joins.interval import interval_join
from slackwater.operators.joins.step import How
from slackwater.operators.joins.windowed import window_join
from slackwater.operators.late_rows import Late
from slackwater.operators.patterns.definitions import Pattern
from slackwater.operators.patterns.spec import PatternDefinition
from slackwater.operators.ports import ROWS
from slackwater.operators.process.base import FrameProcess, Process
from slackwater.operators.process.definition import process_definition
from slackwater.operators.process.step import Order
from slackwater.operators.step import StepDefinition
from slackwater.operators.windows.base import Window
from slackwater.operators.windows.definition import WindowDefinition
from slackwater.operators.windows.spec import FINAL, Accumulation, Semantics
from slackwater.operators.windows.triggers import Trigger, after_watermark
from slackwater.plan.streams.foreign_calls import Hinting
from slackwater.plan.streams.shown import facts_of
from slackwater.plan.streams.stream import Ended, Output, Step, Stream, called

_KEY_BY: Final = "add .key_by(...)"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class KeyedStream(Hinting, kind="a keyed stream"):
    """A stream and its key."""

    stream: Stream
    keys: tuple[str, ...]
    operation: str = ""
    """For streams made by `versions`: the column with the kind of change (insert, update, delete, snapshot)."""
    spread: int = 1
    """Over how many key groups the rows of one key may be spread for a first merge."""

    def __repr__(self) -> str:
        return f"<KeyedStream {self.stream.name} by {', '.join(self.keys)}>"

    def _repr_html_(self) -> str:
        """Return the key, the origin and the columns for display in a notebook."""
        key = {"key": ", ".join(self.keys)}
        return facts_table(f"KeyedStream {self.stream.name}", key | facts_of(self.stream))

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
        if accumulation not in get_args(Accumulation):
            hint = near_miss(str(accumulation), get_args(Accumulation))
            raise refuse("ACCUMULATION", got=f"{accumulation!r}{hint}")
        trigger = after_watermark() if trigger is None else trigger
        if not isinstance(trigger, Trigger):
            raise refuse("NOT_A_TRIGGER", got=repr(trigger))
        if semantics is not None and not isinstance(semantics, Semantics):
            raise refuse("NOT_SEMANTICS", got=repr(semantics))
        window.check_options(trigger, accumulation)
        windowed = WindowedStream(
            keyed=self,
            window=window,
            lateness_ms=duration_ms(allowed_lateness, what="`allowed_lateness`", least_ms=0),
            trigger=trigger,
            accumulation=accumulation,
            semantics=semantics or Semantics(),
            name=self._step_name("window", name),
        )
        return remember(windowed)

    def _step_name(self, method: str, name: str | None) -> str:
        return checked_name(f"{self.stream.name}.{method}" if name is None else name, "step")

    def match(self, pattern: Pattern, *, name: str | None = None) -> Results:
        """Look for a pattern in the rows of each key: `match(times(failed="not ok", n=3, within="10m"))`.

        Rows are processed in event-time order, each when the watermark passes it; a row behind the watermark is late.
        Each match is one result, emitted as soon as no row that may still arrive can change it.
        """
        if not isinstance(pattern, Pattern):
            raise refuse("NOT_A_PATTERN", got=repr(pattern))
        name = self._step_name("match", name)
        return _results(name, PatternDefinition(pattern=pattern), {ROWS: self})

    def deduplicate(
        self,
        *,
        within: Duration | Forever | None = None,
        keep: Keep = "first",
        late: Late = "output",
        name: str | None = None,
    ) -> Deduplicated:
        """Keep one row per key; the others go to the `duplicates` output.

        `keep="first"` emits the first row to arrive, immediately; `"first_by_time"` the one with the smallest event
        time, when the watermark passes it; `"last_by_time"` the one with the largest event time so far, immediately,
        and retracts the previous one. A key is forgotten when the watermark is past its row by more than `within`
        (`within=sw.FOREVER`: never). Rows behind the watermark go to the `late` output or, with `late="process"`, are
        deduplicated like any other.
        """
        name = self._step_name("deduplicate", name)
        definition = DeduplicateDefinition.of(within, keep, late, step=name)
        return Deduplicated(name=name, origin=_step(name, definition, {ROWS: self}))

    def join(
        self,
        other: KeyedStream,
        *,
        between: tuple[Duration, Duration] | None = None,
        how: How = "inner",
        on_match: Expression | None = None,
        suffixes: tuple[str, str] = ("", "_right"),
        late: Late = "output",
        name: str | None = None,
    ) -> Results:
        """Join rows of two streams with equal keys whose times are close to each other: `between=("-5m", "1h")`.

        A row pairs with the other stream's rows from 5 minutes before its own time to 1 hour after it, bounds
        included. A pair is emitted as soon as its second row arrives; an unmatched row of an outer side ("left",
        "right", "full") is emitted, padded with nulls, when no partner can arrive any more. `on_match` is a further
        condition, on the structs `left` and `right`: `on_match="right.amount <= left.amount"`. Rows behind the
        watermark go to the `late` output or, with `late="process"`, are joined with the rows that are still kept.
        """
        definition = interval_join(between=between, how=how, on_match=on_match, suffixes=suffixes, late=late)
        return self._joined(other, definition, name)

    def join_as_of(
        self,
        versions: KeyedStream,
        *,
        versions_ttl: Duration | Forever | None = None,
        how: Literal["inner", "left"] = "inner",
        deleted: Expression | None = None,
        suffixes: tuple[str, str] = ("", "_right"),
        late: Late = "output",
        name: str | None = None,
    ) -> Results:
        """Join each row with the version of its key that is valid at the row's event time.

        `versions` is a keyed stream, or `changes.versions()` of a Debezium stream, which recognizes deletes by itself.
        A version is valid from its own time until the next version of its key, or one that is `deleted`
        ("op = 'delete'"), and for at most `versions_ttl`; `sw.FOREVER` keeps the last version of every key. A row is
        emitted when the watermark has passed its time; with `how="left"`, also if it has no version. Versions are never
        late; rows behind the watermark go to the `late` output or, with `late="process"`, are joined with the versions
        that are still kept.
        """
        definition = as_of_join(
            how=how,
            versions_ttl=versions_ttl,
            deleted=deleted,
            operation=versions.operation if isinstance(versions, KeyedStream) else "",
            suffixes=suffixes,
            late=late,
        )
        return self._joined(versions, definition, name)

    def _joined(self, other: KeyedStream, definition: StepDefinition, name: str | None) -> Results:
        if not isinstance(other, KeyedStream):
            has_windows = isinstance(other, WindowedStream)
            remedy = "remove .window(...); a join of windows has it on both sides" if has_windows else _KEY_BY
            facts = {"takes": "a keyed stream", "got": _called(other), "remedy": remedy}
            raise refuse("JOIN_OTHER", stream=self.stream.name, **facts)
        name = self._step_name("join", name)
        return _results(name, definition, {LEFT: self, RIGHT: other})

    def process(
        self,
        process: Process | FrameProcess,
        *,
        output: SchemaSpec | None = None,
        adds: SchemaSpec | None = None,
        order: Order = "arrival",
        name: str | None = None,
    ) -> Results:
        """Run your own code on the events of each key: `process(FraudDetector(), output="…")`.

        A `sw.Process` is called with one event at a time, a `sw.FrameProcess` with all events of a batch as one frame.
        Results have the columns of `output`, the key, and `event_time`. With `adds="visits long"` instead, they have
        all columns of the event and these: `on_event` yields only the added ones, `on_rows` returns any of its rows
        with them and otherwise unchanged, and `on_timer`, which has no event, yields nothing. Events are processed in
        order of arrival, however late they are; or, with `order="event_time"`, in event-time order once the watermark
        has passed them, and events behind the watermark go to the `late` output. An event on which the code fails is a
        dead letter and leaves no trace in the state.
        """
        name = self._step_name("process", name)
        return _results(name, process_definition(process, output, adds, order, step=name), {ROWS: self})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WindowedStream(Hinting, kind="a windowed stream"):
    """A keyed stream in windows; call `aggregate` to compute results."""

    keyed: KeyedStream
    window: Window
    lateness_ms: int
    trigger: Trigger
    accumulation: Accumulation
    semantics: Semantics
    name: str

    def __repr__(self) -> str:
        return f"<WindowedStream {self.name}: {self.window}>"

    def _repr_html_(self) -> str:
        """Return the window, the key, the origin and the columns for display in a notebook."""
        facts = {"window": str(self.window), "key": ", ".join(self.keyed.keys)}
        return facts_table(f"WindowedStream {self.name}", facts | facts_of(self.keyed.stream))

    def aggregate(self, **aggregates: Aggregate) -> WindowResults:
        """Compute aggregates per key and window: `aggregate(orders=count(), revenue=sum("amount"))`."""
        if not aggregates:
            raise refuse("AGGREGATE_EMPTY", step=self.name)
        for alias, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise refuse("NOT_AN_AGGREGATE", step=self.name, alias=alias, got=repr(aggregate))
        definition = WindowDefinition(
            window=self.window,
            lateness_ms=self.lateness_ms,
            trigger=self.trigger,
            accumulation=self.accumulation,
            semantics=self.semantics,
            aggregates=aggregates,
        )
        origin = _step(self.name, remember(definition, like=self), {ROWS: self.keyed})
        return WindowResults(name=self.name, origin=origin)

    def join(
        self,
        other: WindowedStream,
        *,
        how: How = "inner",
        suffixes: tuple[str, str] = ("", "_right"),
        name: str | None = None,
    ) -> Results:
        """Join rows of two streams with equal keys that share a window, when the window is complete.

        Both streams must have the same windows. A row that arrives after that, within `allowed_lateness`, adds its
        pairs. Outer joins allow no lateness, because they cannot retract their unmatched rows.
        """
        if not isinstance(other, WindowedStream):
            remedy = "add .window(...) to it too" if isinstance(other, KeyedStream) else f"{_KEY_BY} and .window(...)"
            facts = {"takes": "a windowed stream", "got": _called(other), "remedy": remedy}
            raise refuse("JOIN_OTHER", stream=self.keyed.stream.name, **facts)
        for each in (self, other):
            shown = (each.trigger, each.accumulation, each.semantics)
            if shown != (after_watermark(), "accumulating", Semantics()):
                raise refuse("JOIN_WINDOW_OPTIONS", stream=each.keyed.stream.name)
        windows, lateness_ms = (self.window, other.window), (self.lateness_ms, other.lateness_ms)
        definition = window_join(windows=windows, lateness_ms=lateness_ms, how=how, suffixes=suffixes)
        return self.keyed._joined(other.keyed, definition, name)  # noqa: SLF001  defined in this module


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Results(Stream, kind="results"):
    """The results of a keyed step: a stream, with the step's late output and its other outputs."""

    @property
    def late(self) -> Output:
        """The late rows of the step."""
        assert isinstance(self.origin, Step)
        return Output(of=self.origin, kind="late")

    def output(self, name: str) -> SideOutput:
        """Return another output of the step by its name."""
        assert isinstance(self.origin, Step)
        side = checked_name(name, "output")
        return remember(SideOutput(name=f"{self.origin.name}.{side}", origin=self.origin, side=side))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WindowResults(Results):
    """The panes of windows, and the final result of each window."""

    @property
    def final(self) -> SideOutput:
        """One result per window, when it can no longer change: when the watermark is past its allowed lateness."""
        return self.output(FINAL)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Deduplicated(Results):
    """The rows that a deduplication keeps, and its duplicates."""

    @property
    def duplicates(self) -> SideOutput:
        """The rows that the deduplication did not keep."""
        return self.output(DUPLICATES)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SideOutput(Stream):
    """An output of a keyed step other than its results: a stream that must end in a sink, a step, or `drop`."""

    def drop(self) -> Ended:
        """Discard these rows explicitly; they are still counted."""
        return Output(of=self, kind="rows").drop()


def _results(name: str, definition: StepDefinition, inputs: Mapping[str, KeyedStream]) -> Results:
    return Results(name=name, origin=_step(name, definition, inputs))


def _step(name: str, definition: StepDefinition, inputs: Mapping[str, KeyedStream]) -> Step:
    return remember(Step(name=name, definition=definition, inputs=inputs))


def _called(other: object) -> str:
    """Return the name of the other side of a join in messages."""
    if isinstance(other, WindowedStream):
        return f"{other.keyed.stream.name}.key_by(...).window(...)"
    return f"{other.stream.name}.key_by(...)" if isinstance(other, KeyedStream) else called(other)
