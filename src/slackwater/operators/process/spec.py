"""The process on single events, validated and resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from slackwater.eventtime.step_time import StepTime
from slackwater.formats.python_range import limited
from slackwater.operators.process.base import Process
from slackwater.operators.process.chunks import APART, CHUNK
from slackwater.operators.process.declarations import side_outputs_of, states_of
from slackwater.operators.process.emitting import PLACES, AddingEmitter, Emitter, emitted_types
from slackwater.operators.process.event_worker import EventWorker
from slackwater.operators.process.events_and_timers import Running
from slackwater.operators.process.shown import TIMERS, shown_cells, with_chunks
from slackwater.operators.process.state import State
from slackwater.operators.process.step import ProcessStep, lives_for
from slackwater.operators.process.timers_of_a_key import TIMER
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import held_rows


@dataclass(frozen=True, kw_only=True)
class ProcessSpec(ProcessStep):
    """A user-defined process on single events."""

    process: Process

    @cached_property
    def states(self) -> dict[str, State]:
        """The state that the class declares."""
        return states_of(type(self.process))

    @cached_property
    def sides(self) -> Mapping[str, pl.Schema]:
        """The columns of the outputs that the class declares, by name."""
        declared = side_outputs_of(type(self.process))
        return {name: emitted_types(schema, self.key_types) for name, schema in declared.items()}

    @cached_property
    def cell_types(self) -> pl.Schema:
        """The columns of the state of one key, without the key."""
        types = {column: dtype for name, state in self.states.items() for column, dtype in state.columns(name).items()}
        return pl.Schema({**types, TIMERS: pl.List(TIMER), APART: pl.List(CHUNK)})

    @cached_property
    def limited_columns(self) -> dict[str, pl.Expr]:
        """The columns of an event that may hold a value that Python cannot represent, with the check for it."""
        return limited(self.row_schema)

    @property
    def fields(self) -> dict[str, str]:
        """The declared states as text, by name."""
        return {name: str(state) for name, state in self.states.items()}

    @property
    def lives(self) -> dict[str, int]:
        """The time to live of each declared state."""
        return {name: state.ttl_ms for name, state in self.states.items()}

    def worker(self, time: StepTime, state: StepState) -> EventWorker:
        """Return the worker for one batch."""
        return EventWorker(self, time, state)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The place of the event, the key, and the number of the result; those of timers have no event."""
        return PLACES if self.has_places else ()

    def running(self, state: StepState) -> tuple[Running, Emitter, dict[str, Emitter]]:
        """Return the runner of the user's code, with the emitters of its results and side outputs."""
        cls = type(self.process)
        results = (
            AddingEmitter("`adds`", self.output, self.key_types, self.carried)
            if self.adds
            else Emitter("`output`", self.output, self.key_types)
        )
        declared = side_outputs_of(cls).items()
        sides = {name: Emitter(f"output `{name}`", schema, self.key_types) for name, schema in declared}
        return Running(self.process, self.states, sides, results, state), results, sides

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the state of each key by its declared names, and the events that wait for the watermark."""
        rows = with_chunks(held_rows(state, self.keys, key, self), state, self.states)
        return shown_cells(rows, self.keys, self.states, self.row_schema)

    def _described_state(self) -> list[tuple[str, str]]:
        return [
            ("state", f"{name}: {state.described()}, {lives_for(state.ttl_ms)}") for name, state in self.states.items()
        ]
