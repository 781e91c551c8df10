"""A process in one key group: which keys have work in a batch, and what becomes of their state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from slackwater.ground.times import MAX_MS
from slackwater.state.buckets import Buckets
from slackwater.state.pieces import StepState
from slackwater.state.step import ROWS, Emitted, Operator, StepRows
from slackwater.state.step_time import StepTime
from slackwater.state.whole_rows import IN_ORDER, STREAM

if TYPE_CHECKING:
    from slackwater.process.step import ProcessStep


class Worker(ABC):
    """The user's code in one key group, during one batch; what it emits is in `out`."""

    def __init__(self) -> None:
        self.out = Emitted()

    @abstractmethod
    def work(
        self, keys: pl.DataFrame, known: pl.DataFrame, events: pl.DataFrame | None, *, watermark_ms: int
    ) -> pl.DataFrame:
        """Do what `keys` call for, by events or by the clock; returns the rows of their new state.

        Their state is among `known`. `events` are in the order in which they are to be processed; None if it is the
        clock alone that calls.
        """


class ProcessOperator(Operator):
    """Runs the user's code on the events and timers of one key group.

    A key has one row of state. In the order of event time, events wait in rows of their own (with `__ts`) beside it,
    until the watermark has passed them.
    """

    def __init__(self, spec: ProcessStep) -> None:
        self.spec = spec
        self._keys = list(spec.keys)
        self._waits = spec.order == "event_time"
        # Two streams of a union may call their places alike.
        self._order = [*IN_ORDER, *(name for name in spec.place if name == STREAM)]

    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:  # noqa: ARG002  no upkeep
        """Do one batch: look at the clock and take the events, in the order `time` says."""
        batch = _Batch(time=time, buckets=Buckets(state, self.spec), worker=self.spec.worker(time))
        if time.fire_first:
            self._advance(state, batch)
        if self._waits:
            self._put_aside(rows, batch.buckets)
        elif (frame := rows.frame(ROWS)) is not None:
            self._take(frame, batch)
        if not time.fire_first:
            self._advance(state, batch)
        return batch.worker.out

    def _take(self, events: pl.DataFrame, batch: _Batch) -> None:
        """Process events as they arrive."""
        for portion in batch.buckets.touched(events):
            known, theirs = portion.rows, portion.of(events)
            keys = theirs.select(self._keys).unique(maintain_order=True)
            untouched = known.join(keys, on=self._keys, how="anti", nulls_equal=True, maintain_order="left")
            changed = batch.worker.work(keys, known, theirs, watermark_ms=batch.time.judge_ms)
            self._store([untouched, changed], batch.buckets)

    def _put_aside(self, rows: StepRows, buckets: Buckets) -> None:
        """Let events wait for the watermark."""
        buckets.put_aside(rows.packets(ROWS))
        if buckets.is_inbox_full:
            for portion in buckets.everything_near():
                self._store([portion.rows], buckets)

    def _advance(self, state: StepState, batch: _Batch) -> None:
        """Process what the clock calls for: events in their order, timers, and state whose time is over."""
        if not state.wakes(batch.time):
            return
        for rows in batch.buckets.woken(batch.time, whole=self._waits):
            self._wake(rows, batch)

    def _wake(self, rows: pl.DataFrame, batch: _Batch) -> None:
        time = batch.time
        is_due = pl.col("__due") <= time.now_ms
        if time.watermark_ms > time.previous_ms:
            is_due = (pl.col("__end") <= time.watermark_ms) | is_due.fill_null(value=False)
        if not self._waits:
            due, rest = rows.filter(is_due), rows.filter(~is_due)
            changed = batch.worker.work(due.select(self._keys), due, None, watermark_ms=time.watermark_ms)
            self._store([rest, changed], batch.buckets)
            return
        is_event = pl.col("__ts").is_not_null()
        known, events = rows.filter(~is_event), rows.filter(is_event)
        is_over = pl.col("__ts") < time.watermark_ms
        ready = events.filter(is_over).sort(self._order)
        keys = pl.concat([ready.select(self._keys), known.filter(is_due).select(self._keys)])
        keys = keys.unique(maintain_order=True)
        untouched = known.join(keys, on=self._keys, how="anti", nulls_equal=True, maintain_order="left")
        changed = batch.worker.work(keys, known, ready, watermark_ms=time.watermark_ms)
        self._store([untouched, events.filter(~is_over), changed], batch.buckets)

    def _store(self, frames: list[pl.DataFrame], buckets: Buckets) -> None:
        rows = pl.concat(frames)
        if self._waits:
            # The watermark is past an event when it is at the next millisecond.
            end = pl.when(pl.col("__ts").is_null()).then("__end").otherwise(pl.col("__ts") + 1)
            rows = rows.with_columns(end.alias("__end"))
        # One piece for each bucket: what a key needs is in one row, and smaller pieces cost more than they save.
        buckets.store(rows, pl.lit(0), _describe)


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """One batch of one key group: its time, its state, and the user's code."""

    time: StepTime
    buckets: Buckets
    worker: Worker


def _describe(rows: pl.DataFrame) -> dict[str, Any]:
    ends, due = rows["__end"], rows["__due"].min()
    facts = {"min_end_ms": ends.min(), "max_end_ms": ends.max(), "wake_ms": ends.min()}
    return {**facts, "due_ms": MAX_MS if due is None else due}
