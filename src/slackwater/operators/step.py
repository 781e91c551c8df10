"""The contract of a keyed step: what the other rooms require of it, independent of what it computes.

1. A user's call creates a `StepDefinition`. Once the columns of every port are known, the planner resolves it into a
   `KeyedStep`, which provides its columns, how its results change earlier ones, and how late it may emit.
2. FRONT passes each port its rows and sends the port's output to the key groups, by channel.
3. KEYED passes the step's operator those rows and the state of one key group. The operator returns results, rows of
   side outputs, late rows and failed rows.

Windows are one kind of step: FRONT, KEYED and the planner do not know what a window is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar, final

import polars as pl

from slackwater.base.errors import refuse
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.identity import Identity
from slackwater.operators.state.counted_keys import count_keys
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import unpack
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import held_rows, moment, readable

ROWS: Final = "rows"
"""The name of the port of a step with a single port."""
TIMER_FAILED: Final = "timer_failed"
"""The reason of dead letters for failed timers, which contain the key and the time of the timer."""
PORT_ROWS: Final = "rows of "
"""Prefix of a port's name in the state statistics, for the number of its rows in state."""
Guard = Callable[[pl.DataFrame, Callable[[pl.DataFrame], pl.DataFrame]], pl.DataFrame]
"""Applies a function to rows, and removes exactly the rows on which it fails."""
BatchT = TypeVar("BatchT", bound="StepBatch")
Change = Literal["append", "update", "retract"]
"""How a result may change earlier ones: leave them all in place, replace one, or withdraw one."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """One input of a step: the columns of its rows, and which of them form the key."""

    schema: pl.Schema
    keys: tuple[str, ...]
    own: frozenset[str] = frozenset()
    """Columns that Slackwater added in the previous step; this step may replace them."""
    streams: tuple[str, ...] = ()
    """The streams and steps that the rows come from; more than one for a union."""


@dataclass(kw_only=True)
class Taken:
    """The output of a port for the rows of one chunk."""

    kept: pl.DataFrame
    """Rows that are merged with those of the file's other chunks, then sent to KEYED."""
    whole: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Rows that go to KEYED unmerged, by channel."""
    late: pl.DataFrame | None = None
    counts: dict[str, int] = field(default_factory=dict)


class PortFront(ABC):
    """The FRONT part of one port."""

    @abstractmethod
    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Process the rows of one chunk, which have the user's columns and `__ts`, `__part`, `__off`."""

    @abstractmethod
    def merge(self, parts: list[pl.DataFrame], time: StepTime) -> dict[str, pl.DataFrame]:
        """Merge the kept rows of a file's chunks, given in order, into the rows of each channel.

        Every row has `__end`, the event time by which the step must process it.
        """

    def condense(self, channel: str, rows: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG002  as subclasses need it
        """Merge the rows that several files sent to a channel, given in order, into fewer rows where possible."""
        return rows


@dataclass(kw_only=True)
class StepRows:
    """One batch's input to one step in one key group: packets by channel."""

    channels: dict[str, list[Packet]] = field(default_factory=dict)

    def add(self, packet: Packet) -> None:
        """Add a packet; packets may arrive in any order."""
        self.channels.setdefault(packet.kind, []).append(packet)

    def packets(self, *channels: str) -> list[Packet]:
        """Return the packets of `channels` in log order."""
        found = [packet for channel in channels for packet in self.channels.get(channel, ())]
        # Packets of two streams may have the same place, and a replayed batch must see them in the same order.
        return sorted(found, key=lambda packet: (packet.order, packet.kind, packet.payload or b""))

    def frame(self, *channels: str) -> pl.DataFrame | None:
        """Return the rows of `channels` in log order, or None if there are none."""
        frames = [unpack(packet.payload or b"", packet.target) for packet in self.packets(*channels)]
        # The sources of a union may differ in the columns that say where a row came from.
        how: Literal["vertical", "diagonal"] = "vertical" if len({*map(_names, frames)}) <= 1 else "diagonal"
        return pl.concat(frames, how=how) if frames else None


def _names(frame: pl.DataFrame) -> tuple[str, ...]:
    return tuple(frame.columns)


@dataclass(frozen=True, kw_only=True)
class Failed:
    """Rows on which the user's code failed, with the port's columns and the hidden ones, and a message for each."""

    rows: pl.DataFrame
    messages: pl.Series
    reason: str = "failed"
    port: str | None = None
    """The port that the rows came in by, if the step has several."""


@dataclass
class Emitted:
    """The output of a step for one batch: results in the order they were emitted, other rows, and counts."""

    results: list[pl.DataFrame] = field(default_factory=list)
    sides: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    """Rows of the step's side outputs, by output."""
    late: list[pl.DataFrame] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, number: int) -> None:
        """Add `number` to the count `what`."""
        if number:
            self.counts[what] = self.counts.get(what, 0) + number


class Difference(NamedTuple):
    """A part of the layout that prevents a step from resuming from a checkpoint's state: its old and new value."""

    part: str
    found: str
    mine: str

    def __str__(self) -> str:
        return f"{self.part}: {self.found} -> {self.mine}"


@dataclass(kw_only=True)
class StepBatch:
    """One batch of one step in one key group: its rows, its time, the state, and what the step emits."""

    rows: StepRows
    time: StepTime
    state: StepState
    out: Emitted = field(default_factory=Emitted)


class BatchOperator(ABC, Generic[BatchT]):
    """The KEYED part of a step: kinds of steps implement the two halves of a batch, which `run` puts in order."""

    @final
    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:
        """Run one batch of one key group; `stagger` makes the key groups compact in different batches."""
        batch = self.begin(StepBatch(rows=rows, time=time, state=state))
        if time.fire_first:
            self.advance(batch)
            self.add(batch)
        else:
            self.add(batch)
            self.advance(batch)
        self.tidy(batch, stagger)
        return batch.out

    @abstractmethod
    def begin(self, batch: StepBatch) -> BatchT:
        """Return the batch with what both halves need."""

    @abstractmethod
    def advance(self, batch: BatchT) -> None:
        """Advance the watermark and processing time: emit what is due, and forget what has expired."""

    @abstractmethod
    def add(self, batch: BatchT) -> None:
        """Add the batch's rows, and emit what they trigger."""

    def tidy(self, batch: BatchT, stagger: int) -> None:
        """Merge pieces of state that have piled up."""


class Operator(BatchOperator[StepBatch]):
    """The KEYED part of a step whose two halves share nothing but the batch."""

    def begin(self, batch: StepBatch) -> StepBatch:
        """Return the batch as it is."""
        return batch


class StepDefinition(ABC):
    """A keyed step as the user defined it, before the columns of its ports are known."""

    @abstractmethod
    def resolve(self, name: str, ports: Mapping[str, Port]) -> KeyedStep:
        """Return the step for the columns of `ports`, or reject the definition."""


class KeyedStep(ABC):
    """A validated and resolved keyed step: immutable, picklable, the same in both engines."""

    name: str
    keys: tuple[str, ...]
    """The key columns, by their names in the results."""
    combines: ClassVar[bool] = False
    """Whether FRONT combines the rows of a key, so that a hot key does not overload one key group."""
    buries: ClassVar[bool] = False
    """Whether KEYED may turn rows into dead letters; rows of a union must then carry the name of their stream."""
    lateness_ms: int
    """The allowed lateness: how long the step keeps state that the watermark has passed."""

    @property
    @abstractmethod
    def ports(self) -> Mapping[str, Port]:
        """The step's inputs by name."""

    def check_spread(self) -> None:
        """Reject spreading a key's rows over several key groups to condense them, if the step does not support it."""
        raise refuse("KEY_SPREAD_STEP", step=self.name, what="which needs the rows of a key one by one")

    @property
    @abstractmethod
    def result_types(self) -> pl.Schema:
        """The columns of the results."""

    @property
    def own_columns(self) -> frozenset[str]:
        """The columns that Slackwater adds to the rows of all outputs, and that the next step may replace."""
        return frozenset({"event_time"})

    @property
    def sides(self) -> Mapping[str, pl.Schema]:
        """The columns of the step's side outputs, by output; the rows have an `event_time` and are append-only."""
        return {}

    @property
    def may_end_unused(self) -> bool:
        """Whether the results may have no sink, because a side output that is in use contains them."""
        return False

    def asked(self, sides: frozenset[str]) -> KeyedStep:  # noqa: ARG002  as subclasses need it
        """Return the step for a pipeline that uses `sides`; some side outputs exist only if they are used."""
        return self

    @property
    def independent(self) -> tuple[str, ...]:
        """Columns of the stored rows: rows that differ in one of them do not affect each other; at least the key.

        Empty for a step whose stored rows cannot be taken apart, because they refer to each other.
        """
        return self.keys

    def chained(self) -> KeyedStep:
        """Return the step for a pipeline in which another step takes its results."""
        return self

    @property
    def state_parts(self) -> Mapping[int, str]:
        """The ports whose rows are stored separately, by the part of the state that holds them."""
        return {}

    @property
    def band(self) -> tuple[int, int] | None:
        """The size and offset, in milliseconds, of the equal event-time intervals with one result each, or None."""
        return None

    @property
    @abstractmethod
    def late_types(self) -> pl.Schema | None:
        """The columns of the late rows; None for a step that accepts rows no matter how late they are."""

    @property
    def emits(self) -> Change:
        """The strongest change that a result may make to earlier ones; by default, results are append-only."""
        return "append"

    @property
    def event_time(self) -> pl.Expr:
        """The event time of a result in epoch milliseconds, for the steps that follow; by default its `event_time`."""
        return pl.col("event_time").dt.epoch("ms")

    @property
    def identity(self) -> Identity | None:
        """The columns that identify a result; None if only the author of the pipeline can know them."""
        return None

    @property
    @abstractmethod
    def result_order(self) -> list[str]:
        """The columns to sort a batch's results by, for a replay with the same order; empty if it has it anyway."""

    @property
    def lineage(self) -> tuple[str, ...]:
        """Hidden columns of the results: the places of the rows that a result follows from, the decisive one first.

        They break ties between results with the same event time. Without them, the columns of `result_order` do.
        """
        return ()

    @property
    def trails_ms(self) -> int:
        """How far the step's own watermark trails that of its streams."""
        return 0

    @property
    @abstractmethod
    def emission_delay_ms(self) -> int:
        """How long after the watermark the step may still emit."""

    @property
    @abstractmethod
    def layout(self) -> dict[str, str]:
        """The layout of the step's state, as named parts that `difference` compares."""

    def difference(self, stored: Mapping[str, str]) -> Difference | None:
        """Return what prevents the step from resuming from state with the layout `stored`, or None.

        By default any difference does; a step that can convert old state overrides this.
        """
        for part, text in self.layout.items():
            if stored.get(part) != text:
                return Difference(part=part, found=stored.get(part, "nothing"), mine=text)
        return None

    def continued(self, stored: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002  as subclasses need it
        """Return the layout to record for state that was resumed from the layout `stored`."""
        return self.layout

    def written(self, part: str, text: str) -> str:  # noqa: ARG002  as subclasses need it
        """Return a part of a layout, this step's or a stored one, in the notation that users write."""
        return text

    @property
    @abstractmethod
    def rules(self) -> str:
        """A text of every setting outside the layout that affects the results of a batch."""

    @abstractmethod
    def reads(self, port: str) -> list[pl.Expr]:
        """Return the expressions that the step evaluates on the rows of a port, other than the key."""

    @abstractmethod
    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:
        """Return the FRONT part of a port; `undecoded` names columns of the format that were not decoded."""

    @abstractmethod
    def operator(self) -> BatchOperator[Any]:
        """Return the KEYED part."""

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return a readable frame of a key group's state, or of the state of the one key in `key`.

        Key columns come first; hidden columns are omitted or renamed. The time of a row, if it has one, is in
        `event_time` or `window_start`. The state is not modified.
        """
        rows = held_rows(state, self.keys, key)
        time = {"event_time": moment(pl.col("__ts"))} if "__ts" in rows.columns else {}
        return readable(rows, self.keys, **time)

    def shown_rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return stored rows with what dead letters show of their hidden columns, such as the event time."""
        if "__ts" not in rows.columns or "event_time" in rows.columns:
            return rows
        return rows.with_columns(moment(pl.col("__ts")).alias("event_time"))

    def count_keys(self, state: StepState) -> int:
        """Return the number of keys in a key group's state."""
        parts = self.state_parts or {0: next(iter(self.ports))}
        return count_keys(state, {part: self.ports[port].keys for part, port in parts.items()})

    @abstractmethod
    def check_next(self, step: str) -> None:
        """Reject `step` as the consumer of this step's results, if it cannot process them."""

    @abstractmethod
    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Reject an upsert table with the key columns `replaced_by`, if its content would be wrong."""

    @abstractmethod
    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`, as pairs of label and text."""
