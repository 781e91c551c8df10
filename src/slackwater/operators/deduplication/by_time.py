"""Deduplication by event time, which stores one whole row per key in hash buckets."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.deduplication.rows import set_aside, shown
from slackwater.operators.deduplication.seen import until_ms
from slackwater.operators.ports import ROWS
from slackwater.operators.state.buckets import Buckets
from slackwater.operators.step import Emitted, Operator, StepBatch
from slackwater.operators.whole_rows import IN_ORDER

if TYPE_CHECKING:
    from slackwater.operators.deduplication.spec import DeduplicateSpec


_ORDER: Final = (*IN_ORDER, "__place")


class ByTime(Operator):
    """The base class of the operators by event time.

    A state row is one row of a key with its time (`__ts`), the last watermark at which it is remembered (`__until`),
    and whether it was emitted. `__end` is the watermark at which it must next be processed.
    """

    def __init__(self, spec: DeduplicateSpec) -> None:
        self.spec = spec
        self._names = list(spec.state_types)

    @abstractmethod
    def _due(self, rows: pl.DataFrame, watermark_ms: int, out: Emitted) -> pl.DataFrame:
        """Emit the rows that are due by the watermark; return all rows in their new state."""

    @abstractmethod
    def _chosen(self, rows: pl.DataFrame, out: Emitted) -> pl.DataFrame:
        """Return the row that each key keeps, from `rows` in order of arrival; emit results and duplicates."""

    def advance(self, batch: StepBatch) -> None:
        """Emit the rows that are due, and forget the keys whose time is over."""
        if batch.state.wakes(batch.time):
            buckets, watermark_ms = Buckets(batch.state, self.spec), batch.time.watermark_ms
            for woken in buckets.woken(batch.time):
                rows = self._due(woken, watermark_ms, batch.out)
                self._store(rows.filter(~is_forgotten(pl.col("__until") + 1, watermark_ms)), buckets)

    def add(self, batch: StepBatch) -> None:
        """Choose the row of each key among the stored one and those of the batch."""
        if (rows := batch.rows.frame(ROWS)) is not None:
            self._take(rows, batch.time, Buckets(batch.state, self.spec), batch.out)

    def _take(self, fresh: pl.DataFrame, time: StepTime, buckets: Buckets, out: Emitted) -> None:
        # A row that is behind by more than `within` is remembered until the watermark moves, if it is processed.
        until = pl.Series(until_ms(fresh["__ts"].to_numpy(), self.spec.within_ms))
        columns = {
            "__until": pl.max_horizontal(pl.lit(until), time.judge_ms),
            "__is_shown": pl.lit(value=False),
            "__end": pl.lit(0, dtype=pl.Int64),
        }
        fresh = fresh.with_columns(**columns).select(self._names)
        for portion in buckets.touched(fresh):
            rows = pl.concat([portion.rows, portion.of(fresh)])
            self._store(self._chosen(rows.with_row_index("__place"), out), buckets)

    def _store(self, rows: pl.DataFrame, buckets: Buckets) -> None:
        wake = pl.col("__until" if self.spec.retracts else "__ts") + 1
        rows = rows.with_columns(pl.when("__is_shown").then(pl.col("__until") + 1).otherwise(wake).alias("__end"))
        buckets.store(rows.select(self._names), pl.col("__end"), _describe)


class FirstByTime(ByTime):
    """Emits the row with the smallest event time when the watermark passes it; ties are broken by place."""

    def _due(self, rows: pl.DataFrame, watermark_ms: int, out: Emitted) -> pl.DataFrame:
        is_due = ~pl.col("__is_shown") & (pl.col("__ts") < watermark_ms)
        due = rows.filter(is_due).sort("__ts", *self.spec.keys, maintain_order=True)
        if due.height:
            out.results.append(shown(due, self.spec))
        # Only the key of an emitted row is still needed.
        others = [name for name in (*self.spec.row_schema, "__part", "__off") if name not in self.spec.keys]
        is_over = pl.col("__is_shown") | is_due
        return rows.with_columns(
            is_over.alias("__is_shown"), *(pl.when(~is_over).then(pl.col(name)).alias(name) for name in others)
        )

    def _chosen(self, rows: pl.DataFrame, out: Emitted) -> pl.DataFrame:
        first = rows.sort(~pl.col("__is_shown"), *_ORDER).unique(self.spec.keys, keep="first")
        is_kept = pl.col("__place").is_in(first["__place"].implode())
        set_aside(rows.filter(~is_kept), self.spec, out)
        return rows.filter(is_kept)


class LastByTime(ByTime):
    """Emits each row that is newer than the last one of its key, at once, and retracts that one; ties by place."""

    def _due(self, rows: pl.DataFrame, watermark_ms: int, out: Emitted) -> pl.DataFrame:  # noqa: ARG002  all rows are emitted at once
        return rows

    def _chosen(self, rows: pl.DataFrame, out: Emitted) -> pl.DataFrame:
        keys = list(self.spec.keys)
        newest_before = pl.col("__rank").cum_max().shift(1).over(keys)
        is_newest = newest_before.is_null() | (pl.col("__rank") > newest_before)
        ranked = rows.sort(*_ORDER).with_row_index("__rank").sort("__place")
        judged = ranked.with_columns(is_newest.alias("__is_newest"))
        set_aside(judged.filter(~pl.col("__is_newest")), self.spec, out)
        next_place = pl.col("__place").shift(-1).over(keys)
        newest = judged.filter("__is_newest").with_columns(next_place.alias("__next"))
        # Each is emitted at its place unless it was before, and retracted right before the next one is emitted.
        withdrawn = newest.filter(pl.col("__next").is_not_null()).with_columns(__at=2 * pl.col("__next"), __back=True)
        new = newest.filter(~pl.col("__is_shown")).with_columns(__at=2 * pl.col("__place") + 1, __back=False)
        changes = pl.concat([withdrawn, new]).sort("__at")
        if changes.height:
            out.results.append(shown(changes, self.spec, is_retraction=pl.col("__back")))
        return newest.filter(pl.col("__next").is_null()).with_columns(__is_shown=True)


def _describe(rows: pl.DataFrame) -> dict[str, Any]:
    ends = rows["__end"]
    return {"min_end_ms": ends.min(), "max_end_ms": ends.max(), "wake_ms": ends.min()}
