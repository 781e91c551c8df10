"""The process on frames, validated and resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.eventtime.step_time import StepTime
from slackwater.formats.schemas import shown
from slackwater.operators.process.base import FrameProcess
from slackwater.operators.process.frame_worker import FrameWorker
from slackwater.operators.process.state import Clock
from slackwater.operators.process.step import ProcessStep, lives_for
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import free_names, held_rows, moment

AT: Final = "__at"
"""The column with the time at which a state row was returned, by the clock of its time to live."""


@dataclass(frozen=True, kw_only=True)
class FrameSpec(ProcessStep):
    """A user-defined process on frames, with one row of state per key."""

    process: FrameProcess
    state: pl.Schema
    ttl_ms: int
    clock: Clock

    @property
    def cells(self) -> dict[str, str]:
        """The declared columns of the state, by the names of the columns that store them."""
        return {f"__state.{name}": name for name in self.state}

    @property
    def cell_types(self) -> pl.Schema:
        """The columns of the state of one key, without the key."""
        return pl.Schema({**{cell: self.state[name] for cell, name in self.cells.items()}, AT: pl.Int64()})

    @property
    def fields(self) -> dict[str, str]:
        """The declared columns of the state, with their types as text."""
        return {name: str(dtype) for name, dtype in self.state.items()}

    @property
    def layout(self) -> dict[str, str]:
        """The layout of all processes, and the clock, which also distinguishes it from a process on events."""
        return {**super().layout, "frames": f"{self.clock} time"}

    @property
    def lives(self) -> dict[str, int]:
        """The time to live of a row of state."""
        return {"state": self.ttl_ms}

    def worker(self, time: StepTime, state: StepState) -> FrameWorker:  # noqa: ARG002  nothing is apart
        """Return the worker for one batch."""
        return FrameWorker(self, time)

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the state of each key in its declared columns, and the events that wait for the watermark."""
        rows = held_rows(state, self.keys, key, self)
        waiting = {"event_time": moment(pl.col("__ts"))} if self.order == "event_time" else {}
        names = free_names(self.cells, self.keys)
        by_clock = {f"last_{self.clock}_time": moment(pl.col(AT))}
        cells = [pl.col(cell).alias(name) for cell, name in names.items()]
        free = free_names({name: name for name in (*by_clock, *waiting)}, (*self.keys, *names.values()))
        more = [expr.alias(free[name]) for name, expr in (by_clock | waiting).items()]
        return rows.select(*self.keys, *cells, *more)

    def _described_state(self) -> list[tuple[str, str]]:
        return [("state", f"{shown(self.state)}, {self.clock} time, {lives_for(self.ttl_ms)}")]
