"""The process step, checked and resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Literal

import polars as pl

from slackwater.formats.schemas import shown
from slackwater.formats.undecoded import Undecoded
from slackwater.ground.durations import render_ms
from slackwater.ground.stable_text import stable_text
from slackwater.process.base import Process
from slackwater.process.declarations import side_outputs_of, states_of
from slackwater.process.emitting import Outlet, emitted_types
from slackwater.process.migration import conformed, continues
from slackwater.process.operator import ProcessOperator
from slackwater.process.running import Running
from slackwater.process.shown import TIMERS, shown_cells
from slackwater.process.state import NEVER_MS, State
from slackwater.process.timers import TIMER
from slackwater.state.late_rows import late_schema
from slackwater.state.pieces import StepState
from slackwater.state.shown import held_rows
from slackwater.state.step import ROWS, Change, Difference, KeyedStep, Operator, Port, PortFront
from slackwater.state.whole_rows import PLACE, WholeRows

Order = Literal["arrival", "event_time"]


@dataclass(frozen=True, kw_only=True)
class ProcessSpec(KeyedStep):
    """A user's own process: its code, its state, and the order in which it sees events."""

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    process: Process
    output: pl.Schema
    order: Order
    lateness_ms: int = 0

    @cached_property
    def states(self) -> dict[str, State]:
        """The state that the class declares."""
        return states_of(type(self.process))

    @cached_property
    def key_types(self) -> pl.Schema:
        """The columns of the key."""
        return pl.Schema({key: self.row_schema[key] for key in self.keys})

    @property
    def ports(self) -> Mapping[str, Port]:
        """The events."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys)}

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result."""
        return emitted_types(self.output, self.key_types)

    @cached_property
    def sides(self) -> Mapping[str, pl.Schema]:
        """The outputs that the class declares."""
        declared = side_outputs_of(type(self.process))
        return {name: emitted_types(schema, self.key_types) for name, schema in declared.items()}

    @cached_property
    def cell_types(self) -> pl.Schema:
        """The columns of the state of one key, besides the key."""
        types = {column: dtype for name, state in self.states.items() for column, dtype in state.columns(name).items()}
        return pl.Schema({**types, TIMERS: pl.List(TIMER)})

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row: one for each key, and one for each event that waits for its turn."""
        waiting = {**self.row_schema, **PLACE} if self.order == "event_time" else {}
        return pl.Schema({**self.key_types, **waiting, **self.cell_types, "__end": pl.Int64(), "__due": pl.Int64()})

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly the state's columns; what was declared since is empty, what was not is gone."""
        return conformed(rows, self.state_types)

    @cached_property
    def late_types(self) -> pl.Schema | None:
        """The columns of a late row; in the order of arrival no row is late."""
        return late_schema(self.row_schema) if self.order == "event_time" else None

    @property
    def emits(self) -> Change:
        """New rows only."""
        return "append"

    @property
    def event_time(self) -> pl.Expr:
        """That of the event or the timer."""
        return pl.col("event_time").dt.epoch("ms")

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
        return {**layout, "state": json.dumps({name: str(state) for name, state in self.states.items()})}

    def difference(self, stored: Mapping[str, str]) -> Difference | None:
        """Return what keeps this step from continuing from the state of `stored`; fields may come, go and widen."""
        rest = {part: text for part, text in self.layout.items() if part != "state"}
        for part, text in rest.items():
            if stored.get(part) != text:
                return Difference(part=part, found=stored.get(part, "nothing"), mine=text)
        return continues(json.loads(stored.get("state", "{}")), json.loads(self.layout["state"]))

    @property
    def rules(self) -> str:
        """The user's code and its configuration, and how long state lives."""
        cls = type(self.process)
        parents = [parent for parent in cls.__mro__ if issubclass(parent, Process) and parent is not Process]
        code = [
            f"{name} {stable_text(value)}"
            for parent in parents
            for name, value in vars(parent).items()
            if isinstance(value, FunctionType)
        ]
        lives = {name: state.ttl_ms for name, state in self.states.items()}
        return repr((cls.__qualname__, code, stable_text(vars(self.process)), lives, dict(self.output)))

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  it has but one
        """Return all columns: the user's code may look at any."""
        return [pl.all()]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  nothing is left undecoded
        """Return what splits off late rows, if the order of event time makes any."""
        return WholeRows(self, port, judges=self.order == "event_time")

    def operator(self) -> Operator:
        """Return what runs the user's code on the keys of a key group."""
        return ProcessOperator(self)

    def running(self) -> tuple[Running, Outlet, dict[str, Outlet]]:
        """Return the user's code, ready to run, with its outlets."""
        cls = type(self.process)
        results = Outlet("`output`", self.output, self.key_types)
        sides = {
            name: Outlet(f"output `{name}`", schema, self.key_types) for name, schema in side_outputs_of(cls).items()
        }
        return Running(self.process, self.states, sides, results), results, sides

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the state of each key by its declared names, and the events that wait for their turn."""
        return shown_cells(held_rows(state, self.keys, key, self), self.keys, self.states, self.row_schema)

    def check_next(self, step: str) -> None:
        """Let any step follow."""

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Let any table take the results: what a row replaces is the user's choice."""

    def describe(self) -> list[tuple[str, str]]:
        """Return what `explain` shows."""
        held = [("state", f"{name}: {state}, {_lives(state)}") for name, state in self.states.items()]
        return [
            ("key", ", ".join(self.keys)),
            ("runs", f"{type(self.process).__qualname__}, in the order of {self.order.replace('_', ' ')}"),
            *held,
            ("yields", shown(self.output)),
        ]


def _lives(state: State) -> str:
    return "kept forever" if state.ttl_ms >= NEVER_MS else f"kept for {render_ms(state.ttl_ms)}"
