"""The contract of a keyed step: everything the rooms around it ask, whatever the step computes.

1. The planner asks for the step's ports, its columns, how its results change earlier ones, and how late it may emit.
2. FRONT gives each port its rows and sends on what the port makes of them, by channel, to the key groups.
3. KEYED gives the step's operator those rows and the state of one key group, and takes results and late rows from it.

Windows are one kind of step. Nothing outside of their room knows what a window is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from slackwater.formats.undecoded import Undecoded
from slackwater.state.packets import Packet
from slackwater.state.packing import unpack
from slackwater.state.pieces import StepState
from slackwater.state.step_time import StepTime

Guard = Callable[[pl.DataFrame, Callable[[pl.DataFrame], pl.DataFrame]], pl.DataFrame]
"""Applies a function to rows; takes out those on which it fails, each by itself."""
Change = Literal["append", "update", "retract"]
"""What a result may do to earlier ones: stand beside them, replace one, or withdraw one."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """One input of a step: the columns of its rows, and those among them that are the key."""

    schema: pl.Schema
    keys: tuple[str, ...]


@dataclass(kw_only=True)
class Taken:
    """What a port made of the rows of one chunk."""

    kept: pl.DataFrame
    """Merged with what the other chunks of the file gave, then sent to KEYED."""
    whole: dict[str, pl.DataFrame] = field(default_factory=dict)
    """By channel, rows that go to KEYED as they are."""
    late: pl.DataFrame | None = None
    counts: dict[str, int] = field(default_factory=dict)


class PortFront(ABC):
    """What FRONT does to the rows of one port."""

    @abstractmethod
    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Take the rows of one chunk: the user's columns and `__ts`, `__part`, `__off`."""

    @abstractmethod
    def merge(self, parts: list[pl.DataFrame], time: StepTime) -> dict[str, pl.DataFrame]:
        """Return what the chunks of a file gave, in their order, as the rows of each channel.

        Every row has `__end`, the event time by which the step must look at it.
        """


@dataclass(kw_only=True)
class StepRows:
    """One batch's input to one step in one key group: packets by channel."""

    channels: dict[str, list[Packet]] = field(default_factory=dict)

    def add(self, packet: Packet) -> None:
        """Take a packet, in whatever order the shuffle delivers them."""
        self.channels.setdefault(packet.kind, []).append(packet)

    def packets(self, *channels: str) -> list[Packet]:
        """Return the packets of some channels in the order of the log."""
        found = [packet for channel in channels for packet in self.channels.get(channel, ())]
        return sorted(found, key=lambda packet: packet.order)

    def frame(self, *channels: str) -> pl.DataFrame | None:
        """Return the rows of some channels in the order of the log, or None if there are none."""
        frames = [unpack(packet.payload or b"", packet.target) for packet in self.packets(*channels)]
        return pl.concat(frames) if frames else None


@dataclass
class Emitted:
    """What a step emits in one batch: frames of results in the order they were shown, late rows, and counts."""

    results: list[pl.DataFrame] = field(default_factory=list)
    late: list[pl.DataFrame] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, number: int) -> None:
        """Add `number` to the count `what`."""
        if number:
            self.counts[what] = self.counts.get(what, 0) + number


class Operator(ABC):
    """The KEYED part of a step."""

    @abstractmethod
    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:
        """Run one batch of one key group; `stagger` spreads upkeep over the key groups' batches."""


class KeyedStep(ABC):
    """A keyed step, checked and resolved: frozen, picklable, the same in both engines."""

    name: str
    keys: tuple[str, ...]
    """The columns of the key, as results have them."""
    lateness_ms: int
    """How long after the watermark the step remembers what it was complete with."""

    @property
    @abstractmethod
    def ports(self) -> Mapping[str, Port]:
        """The step's inputs by name."""

    @property
    @abstractmethod
    def result_types(self) -> pl.Schema:
        """The columns of a result."""

    @property
    @abstractmethod
    def late_types(self) -> pl.Schema:
        """The columns of a late row."""

    @property
    @abstractmethod
    def emits(self) -> Change:
        """The most that a result may do to earlier ones."""

    @property
    @abstractmethod
    def event_time(self) -> pl.Expr:
        """A result's event time in epoch milliseconds, for the steps that follow."""

    @property
    @abstractmethod
    def result_order(self) -> list[str]:
        """Columns that put the results of a batch into an order which a re-run repeats."""

    @property
    @abstractmethod
    def emission_delay_ms(self) -> int:
        """How long after the watermark the step may still emit."""

    @property
    @abstractmethod
    def layout(self) -> dict[str, str]:
        """What the step's state looks like; a checkpoint can only be continued by an equal one."""

    @property
    @abstractmethod
    def rules(self) -> str:
        """Everything else that decides what a batch's rows become."""

    @abstractmethod
    def reads(self, port: str) -> list[pl.Expr]:
        """Return the expressions that the step evaluates on the rows of a port, besides the key."""

    @abstractmethod
    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:
        """Return the FRONT part of a port, for rows of which some columns may be left undecoded."""

    @abstractmethod
    def operator(self) -> Operator:
        """Return the KEYED part."""

    @abstractmethod
    def check_next(self, step: str) -> None:
        """Refuse `step` as the one that takes this step's results, if it cannot."""

    @abstractmethod
    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Refuse a table of which each row replaces the one with the same `replaced_by`, if results would be wrong."""

    @abstractmethod
    def describe(self) -> list[tuple[str, str]]:
        """Return what `explain` shows, as labels and texts."""
