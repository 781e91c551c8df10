"""The KEYED part of a process: selects the keys that have work in a batch, and stores their new state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from slackwater.base.keys import join_on_keys
from slackwater.base.times import MAX_MS
from slackwater.operators.ports import ROWS
from slackwater.operators.state.buckets import Buckets
from slackwater.operators.step import BatchOperator, Emitted, StepBatch, StepRows
from slackwater.operators.whole_rows import IN_ORDER

if TYPE_CHECKING:
    from slackwater.operators.process.step import ProcessStep


class Worker(ABC):
    """Runs the user's code in one key group, during one batch; its output is in `out`."""

    def __init__(self) -> None:
        self.out = Emitted()

    def readable(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the events that the user's code can be given; the others become dead letters."""
        return events

    @abstractmethod
    def work(
        self, keys: pl.DataFrame, known: pl.DataFrame, events: pl.DataFrame | None, *, watermark_ms: int
    ) -> pl.DataFrame:
        """Process the events and due timers of `keys`; return their new state rows.

        Their state is among `known`. `events` are in the order in which they are processed; None if the keys are only
        woken by a clock.
        """


@dataclass(kw_only=True)
class ProcessBatch(StepBatch):
    """One batch of one key group, with the user's code and the state by key."""

    buckets: Buckets
    worker: Worker


class ProcessOperator(BatchOperator[ProcessBatch]):
    """Runs the user's code on the events and timers of one key group.

    A key has one row of state. With the order of event time, events wait in additional rows (with `__ts`) until the
    watermark has passed them.
    """

    def __init__(self, spec: ProcessStep) -> None:
        self.spec = spec
        self._keys = list(spec.keys)
        self._waits = spec.order == "event_time"

    def begin(self, batch: StepBatch) -> ProcessBatch:
        """Return the batch with the user's code."""
        worker = self.spec.worker(batch.time, batch.state)
        buckets = Buckets(batch.state, self.spec)
        return ProcessBatch(
            rows=batch.rows, time=batch.time, state=batch.state, out=worker.out, buckets=buckets, worker=worker
        )

    def add(self, batch: ProcessBatch) -> None:
        """Process the events, or store them until the watermark has passed them."""
        if self._waits:
            self._put_aside(batch.rows, batch.buckets)
        elif (events := batch.rows.frame(ROWS)) is not None:
            self._take(events, batch)

    def _take(self, events: pl.DataFrame, batch: ProcessBatch) -> None:
        """Process events in order of arrival."""
        events = batch.worker.readable(events)
        for portion in batch.buckets.touched(events):
            known, theirs = portion.rows, portion.of(events)
            keys = theirs.select(self._keys).unique(maintain_order=True)
            untouched = join_on_keys(known, keys, self._keys, how="anti")
            changed = batch.worker.work(keys, known, theirs, watermark_ms=batch.time.judge_ms)
            self._store([untouched, changed], batch.buckets)

    def _put_aside(self, rows: StepRows, buckets: Buckets) -> None:
        """Store events until the watermark has passed them."""
        buckets.put_aside(rows.packets(ROWS))
        if buckets.is_inbox_full:
            for portion in buckets.everything_near():
                self._store([portion.rows], buckets)

    def advance(self, batch: ProcessBatch) -> None:
        """Process what is due by the clocks: events in order of event time, timers, and expired state."""
        if not batch.state.wakes(batch.time):
            return
        for rows in batch.buckets.woken(batch.time, whole=self._waits):
            self._wake(rows, batch)

    def _wake(self, rows: pl.DataFrame, batch: ProcessBatch) -> None:
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
        ready = batch.worker.readable(events.filter(is_over).sort(IN_ORDER))
        keys = pl.concat([ready.select(self._keys), known.filter(is_due).select(self._keys)])
        keys = keys.unique(maintain_order=True)
        untouched = join_on_keys(known, keys, self._keys, how="anti")
        changed = batch.worker.work(keys, known, ready, watermark_ms=time.watermark_ms)
        self._store([untouched, events.filter(~is_over), changed], batch.buckets)

    def _store(self, frames: list[pl.DataFrame], buckets: Buckets) -> None:
        rows = pl.concat(frames)
        if self._waits:
            # The watermark has passed an event when it reaches the next millisecond.
            end = pl.when(pl.col("__ts").is_null()).then("__end").otherwise(pl.col("__ts") + 1)
            rows = rows.with_columns(end.alias("__end"))
        # One piece per bucket: the state of a key is one row, and smaller pieces would cost more than they save.
        buckets.store(rows, pl.lit(0), _describe)


def _describe(rows: pl.DataFrame) -> dict[str, Any]:
    ends, due = rows["__end"], rows["__due"].min()
    facts = {"min_end_ms": ends.min(), "max_end_ms": ends.max(), "wake_ms": ends.min()}
    return {**facts, "due_ms": MAX_MS if due is None else due}
