"""Sliding windows: for every event, the interval of length `size` that ends with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import refuse
from slackwater.base.times import MAX_MS
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.aggregates.combine import compact
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import moment
from slackwater.operators.step import Emitted, Guard, StepBatch, Taken
from slackwater.operators.windows.base import Window
from slackwater.operators.windows.front import BEHIND, OPEN, WindowFront
from slackwater.operators.windows.late_rows import late_rows
from slackwater.operators.windows.operator import WindowOperator, describe
from slackwater.operators.windows.spec import Accumulation, WindowSpec
from slackwater.operators.windows.triggers import Trigger, after_watermark


@dataclass(frozen=True, kw_only=True)
class SlidingWindow(Window):
    """For every event of a key, the interval of length `size` that ends with it: (event - size, event]."""

    is_whole: ClassVar[bool] = False
    size_ms: int

    def check_options(self, trigger: Trigger, accumulation: Accumulation) -> None:
        """Reject triggers, because each event fires one pane, and discarding, because windows share rows."""
        if trigger != after_watermark():
            raise refuse("SLIDING_TRIGGER", got=trigger)
        if accumulation == "discarding":
            raise refuse("SLIDING_DISCARDING")

    def may_update(self, spec: WindowSpec) -> bool:
        """Return whether a late event may correct the windows of others."""
        return spec.lateness_ms > 0

    def shown_bounds(self) -> dict[str, pl.Expr]:
        """Return the event time: a state row has the events of one instant, which many windows share."""
        return {"event_time": moment(pl.col("__end") - 1)}

    def windows_of(self, ts_ms: int) -> list[tuple[int, int]]:
        """Return the window that ends with the event; windows of later events also contain it."""
        return [(ts_ms + 1 - self.size_ms, ts_ms + 1)]

    def longest_ms(self) -> int:
        """Return the size."""
        return self.size_ms

    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:
        """Return the FRONT part."""
        return InstantFront(spec, self, undecoded)

    def operator(self, spec: WindowSpec) -> WindowOperator:
        """Return the KEYED part."""
        return SlidingOperator(spec, self)

    def __str__(self) -> str:
        return f"sliding {render_ms(self.size_ms)}"


def sliding(size: Duration) -> SlidingWindow:
    """For every event, the last `size` of its key, up to and including the event: `sliding("5m")`."""
    return SlidingWindow(size_ms=duration_ms(size, what="sliding window `size`"))


class InstantFront(WindowFront):
    """Combines the rows of a key with the same event time."""

    def __init__(self, spec: WindowSpec, window: SlidingWindow, undecoded: Undecoded | None) -> None:
        super().__init__(spec, undecoded)
        self.window = window

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Split off late rows, and combine the others by key and instant."""
        spec, window, watermark_ms = self.spec, self.window, time.judge_ms
        rows = rows.with_columns(
            (pl.col("__ts") + 1 - window.size_ms).alias("__start"), (pl.col("__ts") + 1).alias("__end")
        )
        late_ones = is_late(rows["__end"], time, spec.lateness_ms)
        late = late_rows(self._whole(rows.filter(late_ones)), spec, watermark_ms) if late_ones.any() else None
        cells = self._combined(rows.filter(~late_ones), spec.by, guard)
        refired = int(cells.filter(pl.col("__end") <= watermark_ms)["__new"].sum())
        counts = {"refired": refired, "on_time": int(cells["__new"].sum()) - refired}
        return Taken(kept=cells, late=late, counts=counts | {"late": 0 if late is None else late.height})


class SlidingOperator(WindowOperator):
    """Stores the instants of one step in one key group, and emits a result for each.

    A state row is an instant: the events of a key at one event time. Its window is
    [time + 1 - size, time + 1). It fires when the watermark is past it, and again when a late
    event falls into its window. It is kept until no future instant can have it in its window.
    """

    def __init__(self, spec: WindowSpec, window: SlidingWindow) -> None:
        super().__init__(spec)
        self.size_ms = window.size_ms

    def advance(self, batch: StepBatch) -> None:
        """Fire the panes that are due by the clock, and forget the windows that have expired."""
        time, state, out = batch.time, batch.state, batch.out
        watermark, kept_ms = time.watermark_ms, self.size_ms + self.spec.lateness_ms
        if state.wakes(time) and any(not piece.is_settled for piece in state.pieces):
            self._fire(time, state, out)
        # Only after firing, because the windows that fired may contain instants that are now dropped.
        state.drop([p for p in state.pieces if p.is_settled and is_forgotten(p.max_end_ms, watermark, kept_ms)])

    def _fire(self, time: StepTime, state: StepState, out: Emitted) -> None:
        watermark, kept_ms = time.watermark_ms, self.size_ms + self.spec.lateness_ms
        # To fire the instants in (previous, watermark], read back one window size from the first of them.
        first = min(p.wake_ms for p in state.pieces if not p.is_settled)
        wanted = [p for p in state.pieces if first - self.size_ms < p.max_end_ms and p.min_end_ms <= watermark]
        instants = self.panes.merge(state.take_rows(wanted, self.spec))
        fires = (pl.col("__end") > time.previous_ms) & (pl.col("__end") <= watermark)
        kept = self._show(instants, fires, "on_time", watermark, out)
        self._store(kept.filter(~is_forgotten(pl.col("__end"), watermark, kept_ms)), state, watermark)

    def add(self, batch: StepBatch) -> None:
        """Add the batch's rows, and fire the panes that they trigger."""
        rows, time, state, out = batch.rows, batch.time, batch.state, batch.out
        watermark = time.judge_ms
        state.append_packets(rows.packets(OPEN))
        late = rows.frame(BEHIND)
        if late is None:
            return
        first, last = int(late["__end"].min()), int(late["__end"].max())  # type: ignore[arg-type]  # an Int64 column; the stubs say Any
        near = [p for p in state.pieces if first - self.size_ms < p.max_end_ms and p.min_end_ms < last + self.size_ms]
        known = self.panes.known(state.take_rows(near, self.spec), time)
        merged = self.panes.merge(pl.concat([known, self.panes.start(late)]))
        corrected = (pl.col("__touched") > 0) & (pl.col("__end") <= watermark)
        self._store(self._show(merged, corrected, "late", watermark, out), state, watermark)

    def _show(self, instants: pl.DataFrame, fires: pl.Expr, pane: str, watermark_ms: int, out: Emitted) -> pl.DataFrame:
        """Fire the instants that `fires` selects; return all instants in their new state."""
        spec, fresh = self.spec, "__fresh" in instants.columns
        instants = (
            instants.sort([*spec.keys, "__end"], maintain_order=True)
            .with_columns((pl.col("__fresh") if fresh else pl.lit(0, dtype=pl.Int64)).alias("__fresh"))
            .with_row_index("__row")
        )
        merges = [merge for alias, aggregate in spec.aggregates.items() for merge in aggregate.merge(alias)]
        rolling = instants.rolling(
            index_column="__end", period=f"{self.size_ms}i", group_by=list(spec.keys), closed="right"
        )
        # A window ends with its own instant, so sorting by that row number restores the order of the instants.
        windows = rolling.agg(pl.col("__fresh").sum().alias("__touched"), pl.col("__row").last(), *merges).sort("__row")
        own = ["__start", "__new", "__panes", *(["__shown"] if "__shown" in instants.columns else [])]
        windows = compact(windows.with_columns(instants.select(own).get_columns()), spec.aggregates)
        instants = instants.drop("__fresh")
        hit = windows.with_columns(fires.alias("__hit"))["__hit"]
        fired = self.panes.fire(windows.filter(hit), pl.lit(value=True), pane, watermark_ms, out)
        # The rolling aggregates are only for the results: an instant stores its own events and its pane columns.
        done = instants.filter(hit).with_columns(fired.sort("__row").select(own).get_columns())
        return pl.concat([instants.filter(~hit), done]).drop("__row")

    def tidy(self, batch: StepBatch, stagger: int) -> None:
        """Merge pieces of about the same size."""
        time, state = batch.time, batch.state
        if crowd := state.crowded(stagger):
            merged = self.panes.merge(state.take_rows(crowd, self.spec))
            self._store(merged, state, time.watermark_ms, crowd[0].tier + 1)

    def _store(self, rows: pl.DataFrame, state: StepState, watermark_ms: int, tier: int = 0) -> None:
        if rows.height:
            state.append_whole(rows, lambda part: self._describe(part, watermark_ms), tier)

    def _describe(self, rows: pl.DataFrame, watermark_ms: int) -> dict[str, Any]:
        # Only instants that the watermark has not reached can wake: nothing is emitted when an instant is forgotten.
        waiting = rows.filter(pl.col("__end") > watermark_ms)["__end"].min()
        return describe(rows, self.spec, watermark_ms) | {"wake_ms": MAX_MS if waiting is None else waiting}
