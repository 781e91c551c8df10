"""The KEYED part of a pattern step: stores rows until they are decided, and emits matches that are certain."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.eventtime.step_time import StepTime
from slackwater.operators.patterns.front import OPEN
from slackwater.operators.patterns.matcher import decide
from slackwater.operators.patterns.results import result_rows
from slackwater.operators.patterns.spec import PatternSpec
from slackwater.operators.state.buckets import Buckets
from slackwater.operators.step import Emitted, Operator, StepBatch


class PatternOperator(Operator):
    """Stores the rows of one step in one key group, and finds the matches among them.

    A row is processed when the watermark passes it, together with the rows of its key that may begin a match with it,
    and again when the match from it must be decided. Rows before the first open one of a key are forgotten.
    """

    def __init__(self, spec: PatternSpec) -> None:
        self.spec = spec
        self._order = [*spec.keys, "__ts", "__part", "__off"]

    def add(self, batch: StepBatch) -> None:
        """Store the batch's rows."""
        buckets = Buckets(batch.state, self.spec)
        buckets.put_aside(batch.rows.packets(OPEN))
        if buckets.is_inbox_full:
            for portion in buckets.everything_near():
                self._store(portion.rows, buckets)

    def advance(self, batch: StepBatch) -> None:
        """Decide the rows that are due."""
        if not batch.state.wakes(batch.time):
            return
        buckets = Buckets(batch.state, self.spec)
        for rows in buckets.woken(batch.time, whole=True):
            self._store(self._undecided(rows, batch.time, batch.out), buckets)

    def _undecided(self, rows: pl.DataFrame, time: StepTime, out: Emitted) -> pl.DataFrame:
        """Emit the certain matches in `rows`; return the rows that are still needed."""
        spec = self.spec
        is_known = pl.col("__end") <= time.watermark_ms
        known = rows.filter(is_known).sort(self._order, maintain_order=True)
        decided = decide(known, spec.course, time.watermark_ms)
        out.count("unmatchable", decided.unmatchable)
        if decided.matches.first.size:
            out.results.append(result_rows(spec.course, spec.result_types, known, decided.matches))
        noted = [pl.Series("__due", decided.due_ms), pl.Series("__seen", decided.seen_ms)]
        kept = known.with_columns(noted).filter(pl.Series(decided.is_kept))
        return pl.concat([kept, rows.filter(~is_known)])

    def _store(self, rows: pl.DataFrame, buckets: Buckets) -> None:
        buckets.store(rows, pl.col("__due"), _described)


def _described(rows: pl.DataFrame) -> dict[str, Any]:
    end, due = rows["__end"], rows["__due"]
    return {"min_end_ms": end.min(), "max_end_ms": end.max(), "wake_ms": due.min()}
