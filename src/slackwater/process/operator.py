"""The process in one key group: which keys have work in a batch, and what becomes of their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from slackwater.ground.times import MAX_MS
from slackwater.process.running import Done, Work
from slackwater.state.buckets import Buckets
from slackwater.state.pieces import StepState
from slackwater.state.step import ROWS, Emitted, Failed, Operator, StepRows
from slackwater.state.step_time import StepTime
from slackwater.state.whole_rows import IN_ORDER, PLACE

if TYPE_CHECKING:
    from slackwater.process.spec import ProcessSpec


class ProcessOperator(Operator):
    """Runs the user's code on the events and timers of one key group.

    A key has one row of state. In the order of event time, events wait in rows of their own (with `__ts`) beside it,
    until the watermark has passed them.
    """

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self._keys = list(spec.keys)
        self._cells = spec.cell_types.names()
        self._waits = spec.order == "event_time"

    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:  # noqa: ARG002  no upkeep
        """Do one batch: look at the clock and take the events, in the order `time` says."""
        batch = _Batch(self.spec, time, Buckets(state, self.spec))
        if time.fire_first:
            self._advance(state, batch)
        if self._waits:
            self._put_aside(rows, batch.buckets)
        elif (frame := rows.frame(ROWS)) is not None:
            self._take(frame, batch)
        if not time.fire_first:
            self._advance(state, batch)
        return batch.out

    def _take(self, events: pl.DataFrame, batch: _Batch) -> None:
        """Process events as they arrive."""
        known = batch.buckets.touched(events)
        keys = events.select(self._keys).unique(maintain_order=True)
        untouched = known.join(keys, on=self._keys, how="anti", nulls_equal=True, maintain_order="left")
        changed = batch.work(keys, known, events, watermark_ms=batch.time.judge_ms)
        self._store([untouched, changed], batch.buckets)

    def _put_aside(self, rows: StepRows, buckets: Buckets) -> None:
        """Let events wait for the watermark."""
        buckets.put_aside(rows.packets(ROWS))
        if buckets.is_inbox_full:
            self._store([buckets.everything_near()], buckets)

    def _advance(self, state: StepState, batch: _Batch) -> None:
        """Process what the clock calls for: events in their order, timers, and state whose time is over."""
        time = batch.time
        if not state.wakes(time):
            return
        rows = batch.buckets.woken(time, whole=self._waits)
        is_due = pl.col("__due") <= time.now_ms
        if time.watermark_ms > time.previous_ms:
            is_due = (pl.col("__end") <= time.watermark_ms) | is_due.fill_null(value=False)
        if not self._waits:
            due, rest = rows.filter(is_due), rows.filter(~is_due)
            changed = batch.work(due.select(self._keys), due, None, watermark_ms=time.watermark_ms)
            self._store([rest, changed], batch.buckets)
            return
        is_event = pl.col("__ts").is_not_null()
        known, events = rows.filter(~is_event), rows.filter(is_event)
        is_over = pl.col("__ts") < time.watermark_ms
        ready = events.filter(is_over).sort(IN_ORDER)
        keys = pl.concat([ready.select(self._keys), known.filter(is_due).select(self._keys)])
        keys = keys.unique(maintain_order=True)
        untouched = known.join(keys, on=self._keys, how="anti", nulls_equal=True, maintain_order="left")
        changed = batch.work(keys, known, ready, watermark_ms=time.watermark_ms)
        self._store([untouched, events.filter(~is_over), changed], batch.buckets)

    def _store(self, frames: list[pl.DataFrame], buckets: Buckets) -> None:
        rows = pl.concat(frames)
        if self._waits:
            # The watermark is past an event when it is at the next millisecond.
            end = pl.when(pl.col("__ts").is_null()).then("__end").otherwise(pl.col("__ts") + 1)
            rows = rows.with_columns(end.alias("__end"))
        # One piece for each bucket: what a key needs is in one row, and smaller pieces cost more than they save.
        buckets.store(rows, pl.lit(0), _describe)


class _Batch:
    """One batch of one key group: its time, its state, and what is emitted."""

    def __init__(self, spec: ProcessSpec, time: StepTime, buckets: Buckets) -> None:
        self.spec, self.time, self.buckets = spec, time, buckets
        self.out = Emitted()

    def work(
        self, keys: pl.DataFrame, known: pl.DataFrame, events: pl.DataFrame | None, *, watermark_ms: int
    ) -> pl.DataFrame:
        """Run the user's code on `keys`, whose state is among `known`; returns the rows of their new state."""
        spec, time = self.spec, self.time
        slots = keys.with_row_index("__slot")
        cells = spec.cell_types.names()
        columns = known.select(*spec.keys, *cells)
        states = slots.join(columns, on=spec.keys, how="left", nulls_equal=True, maintain_order="left")
        is_clock = events is None or spec.order == "event_time"
        if events is not None:
            events = events.join(slots, on=spec.keys, how="left", nulls_equal=True, maintain_order="left")
            events = events.sort("__slot", maintain_order=True)
        running, results, sides = spec.running()
        done = running.run(
            Work(
                keys=keys.rows(),
                states=[states[name].to_list() for name in cells],
                events=[] if events is None else events.select(spec.row_schema.names()).to_dicts(),
                times=[] if events is None else events["__ts"].to_list(),
                ends=_ends(events, keys.height),
                watermark_ms=watermark_ms,
                now_ms=time.now_ms,
                in_order=spec.order == "event_time",
                fires_event=is_clock and time.watermark_ms > time.previous_ms,
                fires_processing=is_clock,
            )
        )
        if (frame := results.frame(keys)) is not None:
            self.out.results.append(frame)
        for name, outlet in sides.items():
            if (frame := outlet.frame(keys)) is not None:
                self.out.sides.setdefault(name, []).append(frame)
        self._bury(keys, events, done)
        return self._rows(keys, done)

    def _bury(self, keys: pl.DataFrame, events: pl.DataFrame | None, done: Done) -> None:
        if done.failed and events is not None:
            rows = events[list(done.failed)].select(*self.spec.row_schema, *PLACE)
            self.out.failed.append(Failed(rows=rows, messages=pl.Series(list(done.failed.values()))))
        if done.failed_timers:
            slots, timers, messages = zip(*done.failed_timers, strict=True)
            rows = keys[list(slots)].with_columns(
                pl.lit(f"{self.spec.name}/timers").alias("__part"),
                pl.Series("__off", [timer.at for timer in timers], dtype=pl.Int64),
                pl.lit(self.time.now_ms, dtype=pl.Int64).alias("__ingested"),
            )
            self.out.failed.append(Failed(rows=rows, messages=pl.Series(messages), reason="timer_failed"))

    def _rows(self, keys: pl.DataFrame, done: Done) -> pl.DataFrame:
        """Return the state of the keys that have any, as rows of state."""
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
    """Return where the events of each key end."""
    if events is None:
        return [0] * keys
    ends: list[int] = np.cumsum(np.bincount(events["__slot"].to_numpy(), minlength=keys)).tolist()
    return ends


def _describe(rows: pl.DataFrame) -> dict[str, Any]:
    ends, due = rows["__end"], rows["__due"].min()
    facts = {"min_end_ms": ends.min(), "max_end_ms": ends.max(), "wake_ms": ends.min()}
    return {**facts, "due_ms": MAX_MS if due is None else due}
