"""The contract of a keyed step: what the other folders require of it, independent of what it computes.

1. A user's call creates a `StepDefinition`. Once the columns of every port are known, the planner resolves it into a
   `KeyedStep`, which provides its columns, how its results change earlier ones, and how late it may emit.
2. FRONT passes each port its rows and sends the port's output to the key groups, by channel.
3. KEYED passes the step's operator those rows and the state of one key group. The operator returns results, rows of
   side outputs, late rows and failed rows.

Windows are one kind of step: FRONT, KEYED and the planner do not know what a window is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, final

import polars as pl

from slackwater.base.errors import refuse
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.ports import Port
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import unpack
from slackwater.operators.state.pieces import StepState
from slackwater.operators.step_memory import StepMemory
from slackwater.operators.step_results import StepResults

TIMER_FAILED: Final = "timer_failed"
"""The reason of dead letters for failed timers, which contain the key and the time of the timer."""
PORT_ROWS: Final = "rows of "
"""Prefix of a port's name in the state statistics, for the number of its rows in state."""
Guard = Callable[[pl.DataFrame, Callable[[pl.DataFrame], pl.DataFrame]], pl.DataFrame]
"""Applies a function to rows, and removes exactly the rows on which it fails."""
BatchT = TypeVar("BatchT", bound="StepBatch")


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
    has_places: bool = True
    """Whether `__part` and `__off` are the place of a single row."""


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


class KeyedStep(StepResults, StepMemory):
    """A validated and resolved keyed step: immutable, picklable, the same in both engines.

    A kind of step implements what is abstract: its ports, its results, the layout of its state, and the parts below
    that run it. Everything else has a default that fits most kinds.
    """

    name: str
    combines: ClassVar[bool] = False
    """Whether FRONT combines the rows of a key, so that a hot key does not overload one key group."""
    buries: ClassVar[bool] = False
    """Whether KEYED may turn rows into dead letters; rows of a union must then carry the name of their stream."""

    def check_spread(self) -> None:
        """Reject spreading a key's rows over several key groups to condense them, if the step does not support it."""
        raise refuse("KEY_SPREAD_STEP", step=self.name, what="which needs the rows of a key one by one")

    def chained(self) -> KeyedStep:
        """Return the step for a pipeline in which another step takes its results."""
        return self

    @property
    def band(self) -> tuple[int, int] | None:
        """The size and offset, in milliseconds, of the equal event-time intervals with one result each, or None."""
        return None

    @property
    def gap_ms(self) -> int | None:
        """The gap that ends a session, for a step with sessions; None if each row has its own."""
        return None

    @property
    def trails_ms(self) -> int:
        """How far the step's own watermark trails that of its streams."""
        return 0

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

    @abstractmethod
    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`, as pairs of label and text."""
