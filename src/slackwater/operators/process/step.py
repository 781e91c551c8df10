"""The base class of processes as keyed steps: one port, state by key, and rows emitted by the user's code."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import ClassVar, Final, Literal

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import refuse
from slackwater.base.stable_text import stable_text
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.schemas import shown
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.late_rows import late_schema
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.process.base import FrameProcess, Process
from slackwater.operators.process.emitting import emitted_types
from slackwater.operators.process.migration import DROPPED, conformed, continues
from slackwater.operators.process.operator import ProcessOperator, Worker
from slackwater.operators.process.state import NEVER_MS
from slackwater.operators.state.pieces import StepState
from slackwater.operators.step import KeyedStep, PortFront
from slackwater.operators.step_memory import Difference
from slackwater.operators.whole_rows import PLACE, STREAM, WholeRows

Order = Literal["arrival", "event_time"]
_LASTING: Final = ("keys", "order", "rows", "frames")
"""The parts of a layout that must not change."""


@dataclass(frozen=True, kw_only=True)
class ProcessStep(KeyedStep):
    """A user-defined process, validated and resolved: its state, and the order in which it sees events."""

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    process: Process | FrameProcess
    output: pl.Schema
    """The declared columns of a result."""
    adds: bool = False
    """Whether results also have the columns of their event."""
    order: Order
    streams: tuple[str, ...] = ()
    """The streams and steps that the events come from."""
    own: frozenset[str] = frozenset()
    """The columns that Slackwater added to the events in preceding steps."""
    buries: ClassVar[bool] = True
    lateness_ms: int = 0
    has_places: bool = False
    """Whether results have the places of their events, which only the steps after this one need."""

    def chained(self) -> ProcessStep:
        """Return the step with the places of events in its results."""
        return replace(self, has_places=True)

    @property
    def independent(self) -> tuple[str, ...]:
        """Nothing: the rows of a key refer to chunks outside of them. A process buries what it fails on itself."""
        return ()

    @property
    @abstractmethod
    def cell_types(self) -> pl.Schema:
        """The columns of the state of one key, without the key."""

    @property
    @abstractmethod
    def fields(self) -> dict[str, str]:
        """The fields of the state, as recorded in a checkpoint: they may be added, dropped and widened."""

    @property
    @abstractmethod
    def lives(self) -> dict[str, int]:
        """How long each part of the state lives after its last write, in milliseconds."""

    @abstractmethod
    def worker(self, time: StepTime, state: StepState) -> Worker:
        """Return the worker for one batch of one key group."""

    @cached_property
    def key_types(self) -> pl.Schema:
        """The types of the key columns."""
        return pl.Schema({key: self.row_schema[key] for key in self.keys})

    @property
    def ports(self) -> Mapping[str, Port]:
        """The single port of the step."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys, streams=self.streams)}

    @cached_property
    def place(self) -> pl.Schema:
        """The hidden columns of an event."""
        return pl.Schema({**PLACE, STREAM: pl.String()}) if len(self.streams) > 1 else PLACE

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result."""
        return pl.Schema({**self.carried, **emitted_types(self.output, {} if self.adds else self.key_types)})

    @cached_property
    def carried(self) -> pl.Schema:
        """The columns of an event that its results have as well."""
        kept = {name: dtype for name, dtype in self.row_schema.items() if self.adds and name != "event_time"}
        return pl.Schema(kept)

    @property
    def own_columns(self) -> frozenset[str]:
        """The event time, and what the events have from preceding steps; never what a side output declares."""
        declared = {name for side in self.sides.values() for name in side}
        return super().own_columns | (self.own & {*self.carried} - declared)

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row, which is the state of a key or an event that waits for the watermark."""
        waiting = {**self.row_schema, **self.place} if self.order == "event_time" else {}
        return pl.Schema({**self.key_types, **waiting, **self.cell_types, "__end": pl.Int64(), "__due": pl.Int64()})

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly the state columns; newly declared ones are null, dropped ones are removed."""
        return conformed(rows, self.state_types)

    @cached_property
    def late_types(self) -> pl.Schema | None:
        """The columns of a late row; None with the order of arrival, in which no row is late."""
        return late_schema(self.row_schema) if self.order == "event_time" else None

    @property
    def result_order(self) -> list[str]:
        """Nothing: results stay in the order in which the user's code yielded them, key by key.

        A table in which a row replaces the one before it must end with what was yielded last, not with the newest time.
        """
        return []

    @property
    def emission_delay_ms(self) -> int:
        """Zero: events in order of event time, and timers, are processed when the watermark reaches them.

        In order of arrival, the results of an event behind the watermark are also behind it.
        """
        return 0

    @property
    def layout(self) -> dict[str, str]:
        """The keys, the order, the columns of waiting events, and the fields of the state."""
        types = (f"{key} {dtype}" for key, dtype in self.key_types.items())
        layout = {"keys": ", ".join(types), "order": self.order}
        if self.order == "event_time":
            layout["rows"] = ", ".join(f"{name} {dtype}" for name, dtype in self.row_schema.items())
        return {**layout, "state": json.dumps(self.fields)}

    def difference(self, stored: Mapping[str, str]) -> Difference | None:
        """Return what prevents resuming from the layout `stored`; fields may be added, dropped and widened."""
        layout = self.layout
        for part in _LASTING:
            before, now = stored.get(part, "nothing"), layout.get(part, "nothing")
            if before != now:
                return Difference(part=part, found=before, mine=now)
        return continues(json.loads(stored.get("state", "{}")), json.loads(layout["state"]))

    def continued(self, stored: Mapping[str, str]) -> Mapping[str, str]:
        """Return the layout with the dropped fields, because state that was not touched since still has them."""
        dropped = dict.fromkeys(json.loads(stored["state"]), DROPPED)
        return {**self.layout, "state": json.dumps(dropped | self.fields)}

    @property
    def rules(self) -> str:
        """The user's code and its configuration, and the time to live of its state."""
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

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  there is only one
        """Return all columns, because the user's code may read any."""
        return [pl.all()]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  nothing is left undecoded
        """Return the FRONT part, which splits off late rows with the order of event time; KEYED counts the others."""
        return WholeRows(self, port, judges=self.order == "event_time", counts=False)

    def operator(self) -> ProcessOperator:
        """Return the KEYED part."""
        return ProcessOperator(self)

    def check_next(self, step: str) -> None:
        """Accept any step."""

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Accept any table: the user decides what a row replaces."""

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        return [
            ("key", ", ".join(self.keys)),
            ("runs", f"{type(self.process).__qualname__}, in the order of {self.order.replace('_', ' ')}"),
            *([("holds", "events until the watermark has passed them")] if self.order == "event_time" else []),
            *self._described_state(),
            ("adds" if self.adds else "yields", shown(self.output)),
        ]

    @abstractmethod
    def _described_state(self) -> list[tuple[str, str]]:
        """Return the lines of the state in `explain`."""


def check_added(step: str, added: pl.Schema, port: Port) -> None:
    """Reject added columns that the events have already, and events with a time of their own."""
    if "event_time" in port.schema and "event_time" not in port.own:
        raise refuse("PROCESS_ROWS_COLUMN", step=step)
    for column in added:
        if column in port.schema:
            raise refuse("PROCESS_ADDED_COLUMN", step=step, column=column)


def lives_for(ttl_ms: int) -> str:
    """Return a time to live as readable text."""
    return "kept forever" if ttl_ms >= NEVER_MS else f"kept for {render_ms(ttl_ms)}"
