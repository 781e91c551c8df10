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
from slackwater.operators.state.pieces import StepState
from slackwater.operators.step import Emitted, Operator, StepRows


class PatternOperator(Operator):
    """Stores the rows of one step in one key group, and finds the matches among them.

    A row is processed when the watermark passes it, together with the rows of its key that may begin a match with it,
    and again when the match from it must be decided. Rows before the first open one of a key are forgotten.
    """

    def __init__(self, spec: PatternSpec) -> None:
        self.spec = spec
        self._order = [*spec.keys, "__ts", "__part", "__off"]

    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:  # noqa: ARG002  buckets need no compaction
        """Run one batch: decide the rows that are due and add the new ones, in the order given by `time.fire_first`."""
        out, buckets = Emitted(), Buckets(state, self.spec)
        if time.fire_first:
            self._decide(time, buckets, out)
            self._add(rows, buckets)
        else:
            self._add(rows, buckets)
            self._decide(time, buckets, out)
        return out

    def _add(self, rows: StepRows, buckets: Buckets) -> None:
        buckets.put_aside(rows.packets(OPEN))
        if buckets.is_inbox_full:
            for portion in buckets.everything_near():
                self._store(portion.rows, buckets)

    def _decide(self, time: StepTime, buckets: Buckets, out: Emitted) -> None:
        if not buckets.state.wakes(time):
            return
        for rows in buckets.woken(time, whole=True):
            self._store(self._undecided(rows, time, out), buckets)

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
