"""Running the user's code on single events of one batch and key group: from frames to plain Python and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from slackwater.base.keys import join_on_keys
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.python_range import OUT_OF_RANGE, split_off
from slackwater.operators.process.events_and_timers import Done, Work
from slackwater.operators.process.operator import Worker
from slackwater.operators.state.pieces import StepState
from slackwater.operators.step import TIMER_FAILED, Failed

if TYPE_CHECKING:
    from slackwater.operators.process.spec import ProcessSpec


class EventWorker(Worker):
    """Runs a process on the events and timers of some keys."""

    def __init__(self, spec: ProcessSpec, time: StepTime, state: StepState) -> None:
        super().__init__()
        self.spec, self.time, self.state = spec, time, state

    def readable(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the events that Python can represent; the others become dead letters."""
        sound, beyond, messages = split_off(events, self.spec.limited_columns)
        if beyond.height:
            rows = beyond.select(*self.spec.row_schema, *self.spec.place)
            self.out.failed.append(Failed(rows=rows, messages=messages, reason=OUT_OF_RANGE))
        return sound

    def work(
        self, keys: pl.DataFrame, known: pl.DataFrame, events: pl.DataFrame | None, *, watermark_ms: int
    ) -> pl.DataFrame:
        """Run the user's code on `keys`, whose state is among `known`; return their new state rows."""
        spec, time = self.spec, self.time
        slots = keys.with_row_index("__slot")
        cells = spec.cell_types.names()
        columns = known.select(*spec.keys, *cells)
        states = join_on_keys(slots, columns, spec.keys, how="left")
        is_clock = events is None or spec.order == "event_time"
        if events is not None:
            events = join_on_keys(events, slots, spec.keys, how="left")
            events = events.sort("__slot", maintain_order=True)
        running, results, sides = spec.running(self.state)
        done = running.run(
            Work(
                keys=keys.rows(),
                states=[states[name].to_list() for name in cells],
                events=[] if events is None else events.select(spec.row_schema.names()).to_dicts(),
                times=[] if events is None else events["__ts"].to_list(),
                ends=_ends(events, keys.height),
                watermark_ms=watermark_ms,
                floor_ms=time.previous_ms,
                now_ms=time.now_ms,
                in_order=spec.order == "event_time",
                fires_event=is_clock and time.watermark_ms > time.previous_ms,
                fires_processing=is_clock,
            )
        )
        if (frame := results.frame(keys, events, has_places=spec.has_places)) is not None:
            self.out.results.append(frame)
        for name, emitter in sides.items():
            if (frame := emitter.frame(keys, events, has_places=spec.has_places)) is not None:
                self.out.sides.setdefault(name, []).append(frame)
        self.out.count("on_time", (0 if events is None else events.height) - len(done.failed))
        self.out.count("dropped_timers", done.dropped_timers)
        self._bury(keys, events, done)
        return self._rows(keys, done)

    def _bury(self, keys: pl.DataFrame, events: pl.DataFrame | None, done: Done) -> None:
        if done.failed and events is not None:
            rows = events[list(done.failed)].select(*self.spec.row_schema, *self.spec.place)
            self.out.failed.append(Failed(rows=rows, messages=pl.Series(list(done.failed.values()))))
        if done.failed_timers:
            slots, timers, messages = zip(*done.failed_timers, strict=True)
            rows = keys[list(slots)].with_columns(
                pl.lit(f"{self.spec.name}/timers").alias("__part"),
                pl.Series("__off", [timer.at for timer in timers], dtype=pl.Int64),
                pl.lit(self.time.now_ms, dtype=pl.Int64).alias("__ingested"),
            )
            self.out.failed.append(Failed(rows=rows, messages=pl.Series(messages), reason=TIMER_FAILED))

    def _rows(self, keys: pl.DataFrame, done: Done) -> pl.DataFrame:
        """Return the state rows of the keys that have state."""
        types = self.spec.cell_types
        cells = [
            pl.Series(name, values, dtype=types[name], strict=True)
            for name, values in zip(types, done.states, strict=True)
        ]
        clock = {"__end": done.wakes, "__due": done.dues}
        ends = [pl.Series(name, values, dtype=pl.Int64) for name, values in clock.items()]
        rows = keys.with_columns(*cells, *ends)
        held = rows.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in types))
        return self.spec.conform(held)


def _ends(events: pl.DataFrame | None, keys: int) -> list[int]:
    """Return the end position of each key's events."""
    if events is None:
        return [0] * keys
    ends: list[int] = np.cumsum(np.bincount(events["__slot"].to_numpy(), minlength=keys)).tolist()
    return ends
