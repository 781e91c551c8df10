"""Panes: when a window of a key fires, what it emits, and what it retracts.

Works on frames of state rows, one row per key and window (`WindowSpec.state_types`), into which
everything known about the window has been merged. All kinds of windows use this code.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.base.times import MAX_MS, timestamp_lit, to_timestamp
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.aggregates.combine import empty_state, finish, merge_states
from slackwater.operators.step import Emitted
from slackwater.operators.windows.spec import FINAL, WindowSpec

MOST_TICKS: Final = 1_000
"""The most event-time panes that one window fires in one batch; later ticks would emit nothing new."""
_TRUE = pl.lit(value=True)


class Panes:
    """Fires and retracts the panes of one step."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec = spec
        self._schedule = spec.schedule
        self._unfinished = ~pl.col("__done") if spec.can_finish else _TRUE

    def start(self, fresh: pl.DataFrame) -> pl.DataFrame:
        """Return a batch's new rows as state rows, counted in `__fresh`, with their first event-time tick."""
        if (step := self._schedule.early_event_time_ms) is not None:
            first = pl.col("__first")
            fresh = fresh.with_columns((first - first.mod(step) + step).alias("__tick"))
        return self.spec.conform(fresh).with_columns(pl.col("__new").alias("__fresh"))

    def known(self, rows: pl.DataFrame, time: StepTime) -> pl.DataFrame:
        """Prepare rows from the state for merging with a batch's new rows."""
        if self._schedule.early_every_ms is not None:
            # A due time at which no pane could fire is skipped; with new rows, a step that adds first still fires it.
            skipped = (pl.col("__new") == 0) | ~self._may_show_early(time.judge_ms)
            due = pl.when(skipped).then(self._next_due(time.now_ms)).otherwise("__due")
            rows = rows.with_columns(due.alias("__due"))
        return rows.with_columns(pl.lit(0, dtype=pl.Int64).alias("__fresh"))

    def merge(self, rows: pl.DataFrame, by: list[str] | None = None) -> pl.DataFrame:
        """Merge `rows`, in order of arrival, into one row per key and window.

        With `by` (the session that a row belongs to), the bounds are merged as well.
        """
        has_fresh = "__fresh" in rows.columns
        rules = {
            "__new": pl.col("__new").sum(),
            "__panes": pl.col("__panes").max(),
            "__done": pl.col("__done").any(),
            "__due": pl.col("__due").min(),
            "__tick": _first_tick() if has_fresh else pl.col("__tick").min(),
            "__shown": pl.col("__shown").explode().drop_nulls(),
            "__fresh": pl.col("__fresh").sum(),
            "__moved": pl.col("__moved").any(),
        }
        if by is not None:
            rules |= {"__start": pl.col("__start").min(), "__end": pl.col("__end").max()}
        extra = [rule for name, rule in rules.items() if name in rows.columns]
        merged = merge_states(rows, by or self.spec.by, self.spec.aggregates, extra)
        wanted = [*dict.fromkeys([*(by or []), *rows.columns])]
        return merged if merged.columns == wanted else merged.select(wanted)

    def after_rows(self, rows: pl.DataFrame, time: StepTime, out: Emitted) -> pl.DataFrame:
        """Fire the panes that this batch's rows trigger (by count), at most one per window; drop `__fresh`."""
        watermark_ms = time.judge_ms
        if self.spec.can_finish:
            # Rows that arrive at a finished window are never emitted.
            rows = rows.with_columns(pl.when("__done").then(pl.lit(0, pl.Int64)).otherwise("__new").alias("__new"))
        touched = (pl.col("__fresh") > 0) & self._unfinished
        passed = pl.col("__end") <= watermark_ms
        late = touched & passed & _at_least(self._schedule.late_count)
        early = touched & ~passed & _at_least(self._schedule.early_count)
        if "__moved" in rows.columns:
            # A session with rows that were emitted as part of another one fires without waiting for more rows.
            moved = pl.col("__moved") & self._unfinished
            late |= moved & passed
            early |= moved & ~passed & pl.lit(not self._schedule.is_lazy)
        if (step := self._schedule.early_every_ms) is not None:
            begins = touched & self._may_show_early(watermark_ms) & pl.col("__due").is_null()
            rows = rows.with_columns(pl.when(begins).then(time.now_ms + step).otherwise("__due").alias("__due"))
        rows = self.fire(rows, late, "late", watermark_ms, out)
        return self.fire(rows, early, "early", watermark_ms, out).drop("__fresh", "__moved", strict=False)

    def advance(self, rows: pl.DataFrame, time: StepTime, out: Emitted) -> pl.DataFrame:
        """Advance processing time, then the watermark; return the rows that are not forgotten."""
        sched = self._schedule
        open_before = pl.col("__end") > time.previous_ms
        if sched.early_every_ms is not None:
            rows = self._processing_time(rows, time, out)
        if sched.early_event_time_ms is not None and time.watermark_ms > time.previous_ms:
            rows = self._event_time(rows, time, out)
        if sched.on_time:
            complete = open_before & (pl.col("__end") <= time.watermark_ms) & self._unfinished
            if not sched.repeat_unchanged and self.spec.accumulation != "discarding":
                complete &= pl.col("__new") > 0
            rows = self.fire(rows, complete, "on_time", time.watermark_ms, out)
        if sched.finish_on_time:
            # Also if nothing was emitted: the watermark finishes the window, not the pane.
            rows = rows.with_columns(pl.col("__done") | (pl.col("__end") <= time.watermark_ms) & open_before)
        if rows.is_empty() or not is_forgotten(int(rows["__end"].min()), time.watermark_ms, self.spec.lateness_ms):  # type: ignore[arg-type]  # an Int64 column; the stubs say Any
            return rows  # nothing is forgotten yet
        forgotten = is_forgotten(pl.col("__end"), time.watermark_ms, self.spec.lateness_ms)
        unshown = forgotten & (pl.col("__new") > 0) & self._unfinished
        if self.spec.semantics.on_close == "flush":
            rows = self.fire(rows, unshown, "late", time.watermark_ms, out)
        else:
            out.count("unshown", int(rows.filter(unshown)["__new"].sum()))
        return self.forget(rows, time.watermark_ms, out)

    def forget(self, rows: pl.DataFrame, watermark_ms: int, out: Emitted) -> pl.DataFrame:
        """Return the rows that are not forgotten; emit the final results of the others, if those are an output."""
        forgotten = is_forgotten(pl.col("__end"), watermark_ms, self.spec.lateness_ms)
        if self.spec.has_final:
            self.emit_final(finish(rows.filter(forgotten), self.spec.aggregates), out)
        return rows.filter(~forgotten)

    def emit_final(self, results: pl.DataFrame, out: Emitted) -> None:
        """Emit the results of windows that can no longer change, in an order that a replay repeats."""
        if results.is_empty():
            return
        bounds = {"window_start": pl.col("__start"), "window_end": pl.col("__end"), "event_time": pl.col("__end") - 1}
        results = results.sort([*self.spec.keys, "__start", "__end"])
        final = results.with_columns(to_timestamp(expr).alias(name) for name, expr in bounds.items())
        out.sides.setdefault(FINAL, []).append(final.select(*self.spec.final_types).cast(self.spec.final_types))
        out.count("final", final.height)

    def show_last(self, rows: pl.DataFrame, watermark_ms: int, out: Emitted) -> None:
        """Fire the only pane of windows that are complete and forgotten at the same time."""
        results = finish(rows, self.spec.aggregates)
        out.results.append(self._result(results, "on_time", watermark_ms, retraction=False))
        out.count("panes", results.height)
        if self.spec.has_final:
            self.emit_final(results, out)

    def _processing_time(self, rows: pl.DataFrame, time: StepTime, out: Emitted) -> pl.DataFrame:
        passed = pl.col("__end") <= time.previous_ms
        new = (pl.col("__due") <= time.now_ms) & (pl.col("__new") > 0) & self._unfinished
        rows = self.fire(rows, new & ~passed, "early", time.previous_ms, out)
        if not self._schedule.on_time:
            rows = self.fire(rows, new & passed, "late", time.previous_ms, out)
        return rows.with_columns(self._next_due(time.now_ms))

    def _next_due(self, now_ms: int) -> pl.Expr:
        """Return the due time, advanced to the next multiple of the interval if `now_ms` has reached it."""
        step, due = self._schedule.early_every_ms or 1, pl.col("__due")
        moved = due + ((now_ms - due) // step + 1) * step
        return pl.when(due <= now_ms).then(moved).otherwise(due).alias("__due")

    def _may_show_early(self, watermark_ms: int) -> pl.Expr:
        """Return whether panes by processing time may still fire: with an on-time pane, only before it."""
        return pl.col("__end") > watermark_ms if self._schedule.on_time else _TRUE

    def _event_time(self, rows: pl.DataFrame, time: StepTime, out: Emitted) -> pl.DataFrame:
        step = self._schedule.early_event_time_ms or 1
        # No tick at the window's last instant: the on-time pane has the same result.
        limit = pl.min_horizontal(pl.lit(time.watermark_ms), pl.col("__end") - 1)
        ticks = ((limit - 1 - pl.col("__tick")) // step + 1).clip(lower_bound=0)
        # At the end of time, a window without an end would tick forever.
        ticking = (pl.col("__end") > time.previous_ms) & (limit < MAX_MS - 1)
        ticks = pl.when(ticking).then(ticks).otherwise(0)
        rows = rows.with_columns(ticks.alias("__ticks"))
        # The watermark may jump over years of ticks, all of which would emit the same result.
        most = min(int(rows["__ticks"].max() or 0), MOST_TICKS)  # type: ignore[arg-type]  # an Int64 column
        for number in range(1, most + 1):
            wanted = (pl.col("__ticks") >= number) & self._unfinished
            shown_before = len(out.results)
            rows = self.fire(rows, wanted, "early", time.watermark_ms, out)
            if len(out.results) == shown_before:
                break  # nothing new to emit, so the remaining ticks would emit nothing either
        return rows.with_columns(pl.col("__tick") + pl.col("__ticks") * step).drop("__ticks")

    def fire(self, rows: pl.DataFrame, wanted: pl.Expr, pane: str, watermark_ms: int, out: Emitted) -> pl.DataFrame:
        """Fire a pane for each row that is `wanted` and has something to emit; return all rows in their new state."""
        may_be_empty = pane == "on_time" and self.spec.semantics.empty_on_time_pane == "emit"
        if self.spec.accumulation == "discarding" and not may_be_empty:
            wanted &= pl.col("__new") > 0
        hit = rows.with_columns(wanted.fill_null(value=False).alias("__hit"))["__hit"]
        if not hit.any():
            return rows
        quiet, fired = (rows.clear(), rows) if hit.all() else (rows.filter(~hit), rows.filter(hit))
        results = finish(fired, self.spec.aggregates)
        if self.spec.accumulation == "retracting":
            changed = self._changed(results)
            quiet = pl.concat([quiet, fired.filter(~changed).with_columns(pl.lit(0, pl.Int64).alias("__new"))])
            fired, results = fired.filter(changed), results.filter(changed)
            fired = self._withdraw(fired, results, pane, watermark_ms, out)
        if results.height:
            out.results.append(self._result(results, pane, watermark_ms, retraction=False))
            out.count("panes", results.height)
        fired = self._after_pane(fired, pane)
        return pl.concat([quiet, fired]) if quiet.height else fired

    def _after_pane(self, rows: pl.DataFrame, pane: str) -> pl.DataFrame:
        changes = [pl.lit(0, dtype=pl.Int64).alias("__new"), pl.col("__panes") + 1]
        if self.spec.can_finish and (self._schedule.once or pane != "early"):
            changes.append(_TRUE.alias("__done"))
        rows = rows.with_columns(changes)
        if self.spec.accumulation == "discarding":
            empty = empty_state(self.spec.row_schema, self.spec.aggregates, rows.height)
            rows = rows.with_columns(empty.get_columns())
        return rows

    def _changed(self, results: pl.DataFrame) -> pl.Series:
        """Return which results differ from the ones emitted before."""
        if self.spec.semantics.retract_unchanged == "emit":
            return pl.repeat(value=True, n=results.height, eager=True)
        was = pl.col("__shown").list.first()
        same = pl.col("__shown").list.len() == 1
        for name in ("__start", "__end", *self.spec.aggregates):
            same &= was.struct.field(name).eq_missing(pl.col(name))
        return results.select(~same.fill_null(value=False)).to_series()

    def _withdraw(
        self, rows: pl.DataFrame, results: pl.DataFrame, pane: str, watermark_ms: int, out: Emitted
    ) -> pl.DataFrame:
        """Retract exactly the rows that were emitted before, and store the ones that are emitted now."""
        before = results.select(*self.spec.keys, "__shown").explode("__shown")
        before = before.filter(pl.col("__shown").is_not_null())
        if before.height:
            stored = before.select(*self.spec.keys, pl.col("__shown").struct.unnest())
            out.results.append(self._result(stored, pane, watermark_ms, retraction=True))
            out.count("retractions", stored.height)
        now = pl.struct("__start", "__end", "__panes", *self.spec.aggregates)
        shown = results.select(now.implode().over(pl.int_range(pl.len())).alias("__shown"))
        return rows.with_columns(shown["__shown"].cast(self.spec.state_types["__shown"]))

    def _result(self, rows: pl.DataFrame, pane: str, watermark_ms: int, *, retraction: bool) -> pl.DataFrame:
        end = pl.col("__end")
        shown = rows.select(
            *self.spec.keys,
            to_timestamp(pl.col("__start")).alias("window_start"),
            pl.when(end < MAX_MS).then(to_timestamp(end)).alias("window_end"),
            *self.spec.aggregates,
            pl.lit(pane).alias("pane"),
            pl.col("__panes").cast(pl.Int32).alias("pane_index"),
            pl.lit(retraction).alias("is_retraction"),
            timestamp_lit(self.spec.shown_watermark_ms(watermark_ms)).alias("watermark"),
        )
        return shown if shown.schema == self.spec.result_types else shown.cast(self.spec.result_types)


def _first_tick() -> pl.Expr:
    """Return the next event-time tick of a window: the stored one, or else that of its first row to arrive."""
    tick = pl.col("__tick")
    return pl.coalesce(tick.filter(pl.col("__fresh") == 0).min(), tick.first()).alias("__tick")


def _at_least(count: int | None) -> pl.Expr:
    return pl.lit(value=False) if count is None else pl.col("__new") >= count
