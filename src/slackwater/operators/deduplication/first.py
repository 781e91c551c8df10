"""Deduplication that keeps the first row to arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.deduplication.rows import set_aside, shown
from slackwater.operators.deduplication.seen import KeyHashes, SeenKeys, slice_ms, until_ms
from slackwater.operators.ports import ROWS
from slackwater.operators.step import Emitted, Operator, StepBatch

if TYPE_CHECKING:
    from slackwater.operators.deduplication.spec import DeduplicateSpec


class FirstToArrive(Operator):
    """Emits the first row of a key at once, and stores only a hash of the key.

    Rows of one batch arrive in log order. A key is forgotten when the watermark is past the time of its first row by
    more than `within`: the watermark decides, not the times of later rows.
    """

    def __init__(self, spec: DeduplicateSpec) -> None:
        self.spec = spec

    def advance(self, batch: StepBatch) -> None:
        """Forget the keys whose time is over."""
        self._seen(batch).forget(batch.time.watermark_ms)

    def add(self, batch: StepBatch) -> None:
        """Emit the first rows of keys that are not remembered; the others are duplicates."""
        if (rows := batch.rows.frame(ROWS)) is not None:
            self._take(rows, batch.time, self._seen(batch), batch.out)

    def tidy(self, batch: StepBatch, stagger: int) -> None:
        """Merge small pieces."""
        closed_ms = self._closed_ms(batch.time)
        self._seen(batch).compact(batch.time.watermark_ms, closed_ms=closed_ms, stagger=stagger)

    def _seen(self, batch: StepBatch) -> SeenKeys:
        return SeenKeys(batch.state, slice_ms(self.spec.within_ms))

    def _take(self, rows: pl.DataFrame, time: StepTime, seen: SeenKeys, out: Emitted) -> None:
        keys = KeyHashes.of(rows, self.spec.keys)
        is_new = keys.is_first()
        places = np.flatnonzero(is_new)
        is_new[places[seen.known(keys.take(places), time.judge_ms)]] = False
        fresh = rows.filter(pl.Series(is_new))
        if fresh.height:
            # A row that is behind by more than `within` gets here only if late rows are processed; it is then
            # remembered until the watermark moves, independent of how rows are batched.
            until = np.maximum(until_ms(fresh["__ts"].to_numpy(), self.spec.within_ms), time.judge_ms)
            seen.add(keys.take(is_new), until)
            out.results.append(shown(fresh, self.spec))
        set_aside(rows.filter(pl.Series(~is_new)), self.spec, out)

    def _closed_ms(self, time: StepTime) -> int:
        """Return the time before which no `until` of a new key can be."""
        spec = self.spec
        return MIN_MS if spec.within_ms >= MAX_MS or spec.late == "process" else time.watermark_ms + spec.within_ms
