"""What all processes have in common as keyed steps: one port, state by key, rows that are emitted as the user says."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import ClassVar, Final, Literal

import polars as pl

from slackwater.formats.schemas import shown
from slackwater.formats.undecoded import Undecoded
from slackwater.ground.durations import render_ms
from slackwater.ground.stable_text import stable_text
from slackwater.process.base import FrameProcess, Process
from slackwater.process.emitting import emitted_types
from slackwater.process.migration import DROPPED, conformed, continues
from slackwater.process.operator import ProcessOperator, Worker
from slackwater.process.state import NEVER_MS
from slackwater.state.late_rows import late_schema
from slackwater.state.step import ROWS, Difference, KeyedStep, Operator, Port, PortFront
from slackwater.state.step_time import StepTime
from slackwater.state.whole_rows import PLACE, STREAM, WholeRows

Order = Literal["arrival", "event_time"]
_LASTING: Final = ("keys", "order", "rows", "frames")
"""The parts of a layout that cannot change."""


@dataclass(frozen=True, kw_only=True)
class ProcessStep(KeyedStep):
    """A user's own code, checked and resolved: its state, and the order in which it sees events."""

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    process: Process | FrameProcess
    output: pl.Schema
    order: Order
    streams: tuple[str, ...] = ()
    """What the events come from."""
    buries: ClassVar[bool] = True
    lateness_ms: int = 0

    @property
    @abstractmethod
    def cell_types(self) -> pl.Schema:
        """The columns of the state of one key, besides the key."""

    @property
    @abstractmethod
    def fields(self) -> dict[str, str]:
        """The fields of the state, as a checkpoint remembers them: they may come, go and widen."""

    @property
    @abstractmethod
    def lives(self) -> dict[str, int]:
        """How long each part of the state lives after its last write, in milliseconds."""

    @abstractmethod
    def worker(self, time: StepTime) -> Worker:
        """Return the user's code, ready for one batch of one key group."""

    @cached_property
    def key_types(self) -> pl.Schema:
        """The columns of the key."""
        return pl.Schema({key: self.row_schema[key] for key in self.keys})

    @property
    def ports(self) -> Mapping[str, Port]:
        """The events."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys, streams=self.streams)}

    @cached_property
    def place(self) -> pl.Schema:
        """The hidden columns of an event."""
        return pl.Schema({**PLACE, STREAM: pl.String()}) if len(self.streams) > 1 else PLACE

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result."""
        return emitted_types(self.output, self.key_types)

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row: one for each key, and one for each event that waits for its turn."""
        waiting = {**self.row_schema, **self.place} if self.order == "event_time" else {}
        return pl.Schema({**self.key_types, **waiting, **self.cell_types, "__end": pl.Int64(), "__due": pl.Int64()})

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly the state's columns; what was declared since is empty, what was not is gone."""
        return conformed(rows, self.state_types)

    @cached_property
    def late_types(self) -> pl.Schema | None:
        """The columns of a late row; in the order of arrival no row is late."""
        return late_schema(self.row_schema) if self.order == "event_time" else None

    @property
    def result_order(self) -> list[str]:
        """By time; those of one event stay in the order they were yielded."""
        return ["event_time", *(key for key in self.keys if key in self.result_types)]

    @property
    def emission_delay_ms(self) -> int:
        """Nothing: an event in its order, and a timer, is due when the watermark reaches it.

        In the order of arrival, the results of an event behind the watermark are behind it, too.
        """
        return 0

    @property
    def layout(self) -> dict[str, str]:
        """What the state looks like."""
        types = (f"{key} {dtype}" for key, dtype in self.key_types.items())
        layout = {"keys": ", ".join(types), "order": self.order}
        if self.order == "event_time":
            layout["rows"] = ", ".join(f"{name} {dtype}" for name, dtype in self.row_schema.items())
        return {**layout, "state": json.dumps(self.fields)}

    def difference(self, stored: Mapping[str, str]) -> Difference | None:
        """Return what keeps this step from continuing from the state of `stored`; fields may come, go and widen."""
        layout = self.layout
        for part in _LASTING:
            before, now = stored.get(part, "nothing"), layout.get(part, "nothing")
            if before != now:
                return Difference(part=part, found=before, mine=now)
        return continues(json.loads(stored.get("state", "{}")), json.loads(layout["state"]))

    def continued(self, stored: Mapping[str, str]) -> Mapping[str, str]:
        """Return the layout with the fields that were dropped: state that was not touched since still has them."""
        dropped = dict.fromkeys(json.loads(stored["state"]), DROPPED)
        return {**self.layout, "state": json.dumps(dropped | self.fields)}

    @property
    def rules(self) -> str:
        """The user's code and its configuration, and how long state lives."""
        cls = type(self.process)
        own = (Process, FrameProcess)
        parents = [parent for parent in cls.__mro__ if issubclass(parent, own) and parent not in own]
        code = [
            f"{name} {stable_text(value)}"
            for parent in parents
            for name, value in vars(parent).items()
            if isinstance(value, FunctionType)
        ]
        return repr((cls.__qualname__, code, stable_text(vars(self.process)), self.lives, dict(self.output)))

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  it has but one
        """Return all columns: the user's code may look at any."""
        return [pl.all()]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  nothing is left undecoded
        """Return what splits off late rows, if the order of event time makes any; the others may still fail."""
        return WholeRows(self, port, judges=self.order == "event_time", counts=False)

    def operator(self) -> Operator:
        """Return what runs the user's code on the keys of a key group."""
        return ProcessOperator(self)

    def check_next(self, step: str) -> None:
        """Let any step follow."""

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Let any table take the results: what a row replaces is the user's choice."""

    def describe(self) -> list[tuple[str, str]]:
        """Return what `explain` shows."""
        return [
            ("key", ", ".join(self.keys)),
            ("runs", f"{type(self.process).__qualname__}, in the order of {self.order.replace('_', ' ')}"),
            *([("holds", "events until the watermark has passed them")] if self.order == "event_time" else []),
            *self._described_state(),
            ("yields", shown(self.output)),
        ]

    @abstractmethod
    def _described_state(self) -> list[tuple[str, str]]:
        """Return what `explain` shows of the state."""


def lives_for(ttl_ms: int) -> str:
    """Return how long state lives, for people to read."""
    return "kept forever" if ttl_ms >= NEVER_MS else f"kept for {render_ms(ttl_ms)}"
