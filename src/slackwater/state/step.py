"""The contract of a keyed step: everything the rooms around it ask, whatever the step computes.

1. A user's call makes a `StepDefinition`. The planner resolves it, once the rows of every port are known, into a
   `KeyedStep`, and asks that for its columns, how its results change earlier ones, and how late it may emit.
2. FRONT gives each port its rows and sends on what the port makes of them, by channel, to the key groups.
3. KEYED gives the step's operator those rows and the state of one key group, and takes results, rows of its other
   outputs, late rows and rows that failed from it.

Windows are one kind of step: FRONT, KEYED and the planner do not know what a window is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, NamedTuple

import polars as pl

from slackwater.errors import refuse
from slackwater.formats.undecoded import Undecoded
from slackwater.state.counted_keys import count_keys
from slackwater.state.identity import Identity
from slackwater.state.packets import Packet
from slackwater.state.packing import unpack
from slackwater.state.pieces import StepState
from slackwater.state.shown import held_rows, moment, readable
from slackwater.state.step_time import StepTime

ROWS: Final = "rows"
"""The port of a step that has but one."""
TIMER_FAILED: Final = "timer_failed"
"""The reason of a dead letter that is a key and the time of its timer."""
PORT_ROWS: Final = "rows of "
"""Before the name of a port, in the statistics of state: how many rows are held of it."""
Guard = Callable[[pl.DataFrame, Callable[[pl.DataFrame], pl.DataFrame]], pl.DataFrame]
"""Applies a function to rows; takes out those on which it fails, each by itself."""
Change = Literal["append", "update", "retract"]
"""What a result may do to earlier ones: stand beside them, replace one, or withdraw one."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """One input of a step: the columns of its rows, and those among them that are the key."""

    schema: pl.Schema
    keys: tuple[str, ...]
    own: frozenset[str] = frozenset()
    """The columns that Slackwater has added in the step before: the next one may replace them."""
    streams: tuple[str, ...] = ()
    """The streams and steps that its rows come from: several, if it takes a union."""


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

    def condense(self, channel: str, rows: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG002  as subclasses need it
        """Return what several files gave to a channel, in their order, as fewer rows where that is possible."""
        return rows


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
        # Packets of two streams may have one place, and a batch that is run again must see them in the same order.
        return sorted(found, key=lambda packet: (packet.order, packet.kind, packet.payload or b""))

    def frame(self, *channels: str) -> pl.DataFrame | None:
        """Return the rows of some channels in the order of the log, or None if there are none."""
        frames = [unpack(packet.payload or b"", packet.target) for packet in self.packets(*channels)]
        # Sources that were united may say more or less about where a row came from.
        how: Literal["vertical", "diagonal"] = "vertical" if len({*map(_names, frames)}) <= 1 else "diagonal"
        return pl.concat(frames, how=how) if frames else None


def _names(frame: pl.DataFrame) -> tuple[str, ...]:
    return tuple(frame.columns)


@dataclass(frozen=True, kw_only=True)
class Failed:
    """Rows on which the user's code failed: the port's columns and the hidden ones, and a message for each."""

    rows: pl.DataFrame
    messages: pl.Series
    reason: str = "failed"


@dataclass
class Emitted:
    """What a step emits in one batch: frames of results in the order they were shown, late rows, and counts."""

    results: list[pl.DataFrame] = field(default_factory=list)
    sides: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    """Rows of the step's other outputs, by name."""
    late: list[pl.DataFrame] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, number: int) -> None:
        """Add `number` to the count `what`."""
        if number:
            self.counts[what] = self.counts.get(what, 0) + number


class Difference(NamedTuple):
    """What keeps a step from continuing from the state of a checkpoint: a part of its layout, before and now."""

    part: str
    found: str
    mine: str

    def __str__(self) -> str:
        return f"{self.part}: {self.found} -> {self.mine}"


class Operator(ABC):
    """The KEYED part of a step."""

    @abstractmethod
    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:
        """Run one batch of one key group; `stagger` spreads upkeep over the key groups' batches."""


class StepDefinition(ABC):
    """What a user asks of a keyed step, before the rows of its ports are known."""

    @abstractmethod
    def resolve(self, name: str, ports: Mapping[str, Port]) -> KeyedStep:
        """Return the step for rows as `ports` have them, or refuse it."""


class KeyedStep(ABC):
    """A keyed step, checked and resolved: frozen, picklable, the same in both engines."""

    name: str
    keys: tuple[str, ...]
    """The columns of the key, as results have them."""
    combines: ClassVar[bool] = False
    """Whether FRONT combines the rows of a key, so that a hot key is not the work of one key group."""
    buries: ClassVar[bool] = False
    """Whether KEYED makes dead letters of rows, so that those of a union must say which stream they are of."""
    lateness_ms: int
    """How long after the watermark the step remembers what it was complete with."""

    @property
    @abstractmethod
    def ports(self) -> Mapping[str, Port]:
        """The step's inputs by name."""

    def check_spread(self) -> None:
        """Refuse keys whose rows are condensed in several key groups before they come together, if they cannot be."""
        raise refuse("KEY_SPREAD_STEP", step=self.name, what="which needs the rows of a key one by one")

    @property
    @abstractmethod
    def result_types(self) -> pl.Schema:
        """The columns of a result."""

    @property
    def own_columns(self) -> frozenset[str]:
        """The columns that Slackwater adds to results and other rows, and that a next step may replace."""
        return frozenset({"event_time"})

    @property
    def sides(self) -> Mapping[str, pl.Schema]:
        """The step's other outputs by name; their rows have an `event_time`, and stand beside earlier ones."""
        return {}

    @property
    def may_end_unused(self) -> bool:
        """Whether results need no destination, because another output that is used has them."""
        return False

    def asked(self, sides: frozenset[str]) -> KeyedStep:  # noqa: ARG002  as subclasses need it
        """Return the step as it is when the pipeline uses `sides`, of which some may exist only if they are used."""
        return self

    @property
    def state_parts(self) -> Mapping[int, str]:
        """The ports whose rows are kept apart, by the part of the state that they are in."""
        return {}

    @property
    def band(self) -> tuple[int, int] | None:
        """The size and the offset, in milliseconds, of equal spans of event time that each give a result; else None."""
        return None

    @property
    @abstractmethod
    def late_types(self) -> pl.Schema | None:
        """The columns of a late row; None for a step that takes rows however late they are."""

    @property
    def emits(self) -> Change:
        """The most that a result may do to earlier ones; unless a step says otherwise, it stands beside them."""
        return "append"

    @property
    def event_time(self) -> pl.Expr:
        """A result's event time in epoch milliseconds, for the steps that follow; most results have a column of it."""
        return pl.col("event_time").dt.epoch("ms")

    @property
    def identity(self) -> Identity | None:
        """The columns that tell results apart; None where that is for the pipeline's author to know."""
        return None

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
        """What the step's state looks like; see `difference`."""

    def difference(self, stored: Mapping[str, str]) -> Difference | None:
        """Return what keeps the step from continuing from state whose layout was `stored`; None if nothing does.

        Unless a step can make old state its own, any difference does.
        """
        for part, text in self.layout.items():
            if stored.get(part) != text:
                return Difference(part=part, found=stored.get(part, "nothing"), mine=text)
        return None

    def continued(self, stored: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002  as subclasses need it
        """Return the layout to write down for state that continues from one whose layout was `stored`."""
        return self.layout

    def written(self, part: str, text: str) -> str:  # noqa: ARG002  as subclasses need it
        """Return a part of a layout, this step's or a stored one, as users write it."""
        return text

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

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return what a key group holds, or holds of the one key in `key`'s only row, as people read it.

        The key's columns come first, and hidden ones are left out or get a name. Where rows have a time of their own,
        it is in `event_time` or `window_start`. Nothing is taken out of the state.
        """
        rows = held_rows(state, self.keys, key)
        time = {"event_time": moment(pl.col("__ts"))} if "__ts" in rows.columns else {}
        return readable(rows, self.keys, **time)

    def count_keys(self, state: StepState) -> int:
        """Return how many keys a key group holds."""
        parts = self.state_parts or {0: next(iter(self.ports))}
        return count_keys(state, {part: self.ports[port].keys for part, port in parts.items()})

    @abstractmethod
    def check_next(self, step: str) -> None:
        """Refuse `step` as the one that takes this step's results, if it cannot."""

    @abstractmethod
    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Refuse a table of which each row replaces the one with the same `replaced_by`, if results would be wrong."""

    @abstractmethod
    def describe(self) -> list[tuple[str, str]]:
        """Return what `explain` shows, as labels and texts."""
