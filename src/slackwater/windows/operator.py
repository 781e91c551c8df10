"""What every window operator does in a batch, whatever its windows are."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import polars as pl

from slackwater.ground.times import MAX_MS
from slackwater.state.pieces import StepState
from slackwater.state.step import Emitted, Operator, StepRows
from slackwater.state.step_time import StepTime
from slackwater.windows.panes import Panes
from slackwater.windows.spec import WindowSpec


class WindowOperator(Operator):
    """Keeps the windows of one step in one key group, and fires them."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec = spec
        self.panes = Panes(spec)

    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:
        """Do one batch: fire what the clock calls for and add the rows, in the order `time` says."""
        out = Emitted()
        if time.fire_first:
            self._advance(time, state, out)
            self._add(rows, time, state, out)
        else:
            self._add(rows, time, state, out)
            self._advance(time, state, out)
        self._compact(time, state, stagger)
        return out

    def merged(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return state rows with all that is known of a window in one of them."""
        return self.panes.merge(rows)

    @abstractmethod
    def _advance(self, time: StepTime, state: StepState, out: Emitted) -> None:
        """Show the panes that the clock calls for, and forget what it closes for good."""

    @abstractmethod
    def _add(self, rows: StepRows, time: StepTime, state: StepState, out: Emitted) -> None:
        """Take the batch's rows, and show the panes that they call for."""

    @abstractmethod
    def _compact(self, time: StepTime, state: StepState, stagger: int) -> None:
        """Merge pieces that have piled up; `stagger` spreads that over the key groups' batches."""


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
