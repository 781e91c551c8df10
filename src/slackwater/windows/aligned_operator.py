"""The window aggregate over aligned windows: tumbling, hopping, cumulative and global."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.ground.times import MAX_MS
from slackwater.state.inputs import GroupRows
from slackwater.state.pieces import StepState
from slackwater.state.step_time import StepTime
from slackwater.windows.operator import WindowOperator
from slackwater.windows.panes import Panes, Shown
from slackwater.windows.spec import WindowSpec


class AlignedWindows(WindowOperator):
    """Keeps the windows of one step in one key group, and fires them."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec = spec
        self.panes = Panes(spec)

    def _advance(self, time: StepTime, state: StepState, out: Shown) -> None:
        watermark, lateness = time.watermark_ms, self.spec.lateness_ms
        state.drop([p for p in state.pieces if p.is_settled and p.max_end_ms + lateness <= watermark])
        if not state.wakes(time):
            return
        lazy = self.spec.schedule.is_lazy
        wanted = [p for p in state.pieces if not lazy or (not p.is_settled and p.min_end_ms <= watermark)]
        rows = state.take_rows(wanted, self.spec)
        if lazy and any(p.max_end_ms > watermark for p in wanted):
            # Only complete rows may fire: of a lazy step that is what has reached its end. The rest goes back.
            state.append(rows.filter(pl.col("__end") > watermark), self._describe(watermark))
            rows = rows.filter(pl.col("__end") <= watermark)
        rows = self.panes.merge(rows)
        if self.spec.is_shown_once and not rows["__panes"].max():
            self.panes.show_last(rows, watermark, out)
        else:
            state.append(self.panes.advance(rows, time, out), self._describe(watermark))

    def _add(self, rows: GroupRows, time: StepTime, state: StepState, out: Shown) -> None:
        lazy = self.spec.schedule.is_lazy
        if lazy:
            for blob in rows.open:
                facts = {"min_end_ms": blob.min_end_ms, "max_end_ms": blob.max_end_ms, "wake_ms": blob.min_end_ms}
                state.append_blob(blob.payload, rows=blob.rows, **facts)
        eager = rows.frame(self.spec.name, rows.behind if lazy else [*rows.open, *rows.behind])
        if eager is None:
            return
        first, last = int(eager["__end"].min()), int(eager["__end"].max())  # type: ignore[arg-type]  # whole numbers: Polars says any
        touched = [p for p in state.pieces if p.min_end_ms <= last and p.max_end_ms >= first]
        known = self.panes.known(state.take_rows(touched, self.spec), time)
        merged = self.panes.merge(pl.concat([known, self.panes.start(eager)]))
        state.append(self.panes.after_rows(merged, time, out), self._describe(time.judge_ms))

    def _compact(self, time: StepTime, state: StepState, stagger: int) -> None:
        if crowd := state.crowded(stagger):
            merged = self.panes.merge(state.take_rows(crowd, self.spec))
            state.append(merged, self._describe(time.watermark_ms), tier=crowd[0].tier + 1)

    def _describe(self, watermark_ms: int) -> Any:  # noqa: ANN401  a function from frame to facts
        return lambda rows: describe(rows, self.spec, watermark_ms)


def wake_of(spec: WindowSpec, end: pl.Expr, watermark_ms: int) -> pl.Expr:
    """Return the watermark at which something must happen to a window: a pane, or that it is forgotten."""
    is_open = end > watermark_ms
    wake = pl.when(is_open).then(end).otherwise(end + spec.lateness_ms)
    if "__tick" not in spec.state_types:
        return wake
    # A tick fires when the watermark is past it; after the window's end there are none.
    return pl.when(is_open).then(pl.min_horizontal(wake, pl.col("__tick") + 1)).otherwise(wake)


def describe(rows: pl.DataFrame, spec: WindowSpec, watermark_ms: int) -> dict[str, Any]:
    """Return the index's facts about `rows`, which are stored while `watermark_ms` is in force."""
    end, open_ = pl.col("__end"), pl.col("__end") > watermark_ms
    wake = wake_of(spec, end, watermark_ms)
    due = pl.lit(None, dtype=pl.Int64)
    if "__due" in rows.columns:
        # Where nothing is new, or the on-time pane was the last to ask the clock, no due pane can show anything.
        waits = (pl.col("__new") > 0) & (open_ | pl.lit(not spec.schedule.on_time))
        due = pl.when(waits).then("__due")
    silent = ~open_ & (pl.col("__new") == 0)
    facts = rows.select(min_end=end.min(), max_end=end.max(), wake=wake.min(), due=due.min(), settled=silent.all()).row(
        0, named=True
    )
    return {
        "min_end_ms": facts["min_end"],
        "max_end_ms": facts["max_end"],
        "wake_ms": facts["wake"],
        "due_ms": MAX_MS if facts["due"] is None else facts["due"],
        "is_settled": facts["settled"],
    }
