"""The window aggregate over sliding windows: for every event, the last `size` of its key up to and including it."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.aggregates.combine import compact
from slackwater.ground.times import MAX_MS
from slackwater.state.inputs import GroupRows
from slackwater.state.pieces import StepState
from slackwater.state.step_time import StepTime
from slackwater.windows import SlidingWindow
from slackwater.windows.aligned_operator import describe
from slackwater.windows.operator import WindowOperator
from slackwater.windows.panes import Panes, Shown
from slackwater.windows.spec import WindowSpec


class SlidingWindows(WindowOperator):
    """Keeps the instants of one step in one key group, and shows a result for each.

    A state row is an instant: the events of a key at one event time. Its window is
    [time + 1 - size, time + 1). It fires when the watermark is past it, and again when a late
    event falls into its window. It is kept until no instant that is still to come can look back on it.
    """

    def __init__(self, spec: WindowSpec) -> None:
        assert isinstance(spec.window, SlidingWindow)
        self.spec = spec
        self.size_ms = spec.window.size_ms
        self.panes = Panes(spec)

    def _advance(self, time: StepTime, state: StepState, out: Shown) -> None:
        watermark, kept_ms = time.watermark_ms, self.size_ms + self.spec.lateness_ms
        if state.wakes(time) and any(not piece.is_settled for piece in state.pieces):
            self._fire(time, state, out)
        # Only now: what fired may have looked back on instants that nothing needs any more.
        state.drop([p for p in state.pieces if p.is_settled and p.max_end_ms + kept_ms <= watermark])

    def _fire(self, time: StepTime, state: StepState, out: Shown) -> None:
        watermark, kept_ms = time.watermark_ms, self.size_ms + self.spec.lateness_ms
        # To fire the instants in (previous, watermark], look back one size from the first of them.
        first = min(p.wake_ms for p in state.pieces if not p.is_settled)
        wanted = [p for p in state.pieces if first - self.size_ms < p.max_end_ms and p.min_end_ms <= watermark]
        instants = self.panes.merge(state.take_rows(wanted, self.spec))
        fires = (pl.col("__end") > time.previous_ms) & (pl.col("__end") <= watermark)
        kept = self._show(instants, fires, "on_time", watermark, out)
        self._store(kept.filter(pl.col("__end") + kept_ms > watermark), state, watermark)

    def _add(self, rows: GroupRows, time: StepTime, state: StepState, out: Shown) -> None:
        watermark = time.judge_ms
        for blob in rows.open:
            facts = {"min_end_ms": blob.min_end_ms, "max_end_ms": blob.max_end_ms, "wake_ms": blob.min_end_ms}
            state.append_blob(blob.payload, rows=blob.rows, **facts)
        late = rows.frame(self.spec.name, rows.behind)
        if late is None:
            return
        first, last = int(late["__end"].min()), int(late["__end"].max())  # type: ignore[arg-type]  # whole numbers: Polars says any
        near = [p for p in state.pieces if first - self.size_ms < p.max_end_ms and p.min_end_ms < last + self.size_ms]
        known = self.panes.known(state.take_rows(near, self.spec), time)
        merged = self.panes.merge(pl.concat([known, self.panes.start(late)]))
        corrected = (pl.col("__touched") > 0) & (pl.col("__end") <= watermark)
        self._store(self._show(merged, corrected, "late", watermark, out), state, watermark)

    def _show(self, instants: pl.DataFrame, fires: pl.Expr, pane: str, watermark_ms: int, out: Shown) -> pl.DataFrame:
        """Show the instants that `fires` picks; return all instants as they are afterwards."""
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
        # A window ends with its own instant, whose number puts the windows back in the order of the instants.
        windows = rolling.agg(pl.col("__fresh").sum().alias("__touched"), pl.col("__row").last(), *merges).sort("__row")
        own = ["__start", "__new", "__panes", *(["__shown"] if "__shown" in instants.columns else [])]
        windows = compact(windows.with_columns(instants.select(own).get_columns()), spec.aggregates)
        instants = instants.drop("__fresh")
        hit = windows.with_columns(fires.alias("__hit"))["__hit"]
        fired = self.panes.fire(windows.filter(hit), pl.lit(value=True), pane, watermark_ms, out)
        # The rolling sums were only for show: an instant keeps its own events, and what became of its panes.
        done = instants.filter(hit).with_columns(fired.sort("__row").select(own).get_columns())
        return pl.concat([instants.filter(~hit), done]).drop("__row")

    def _compact(self, time: StepTime, state: StepState, stagger: int) -> None:
        if crowd := state.crowded(stagger):
            merged = self.panes.merge(state.take_rows(crowd, self.spec))
            self._store(merged, state, time.watermark_ms, crowd[0].tier + 1)

    def _store(self, rows: pl.DataFrame, state: StepState, watermark_ms: int, tier: int = 0) -> None:
        if rows.height:
            state.append_whole(rows, lambda part: self._describe(part, watermark_ms), tier)

    def _describe(self, rows: pl.DataFrame, watermark_ms: int) -> dict[str, Any]:
        # Only an instant that the watermark has not reached is waited for: none shows anything when it is forgotten.
        waiting = rows.filter(pl.col("__end") > watermark_ms)["__end"].min()
        return describe(rows, self.spec, watermark_ms) | {"wake_ms": MAX_MS if waiting is None else waiting}
