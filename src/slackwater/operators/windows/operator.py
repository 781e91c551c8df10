"""The base class of window operators: what all of them do in a batch."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.base.times import MAX_MS
from slackwater.operators.step import Operator
from slackwater.operators.windows.panes import Panes
from slackwater.operators.windows.spec import WindowSpec


class WindowOperator(Operator):
    """Stores and fires the windows of one step in one key group."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec = spec
        self.panes = Panes(spec)

    def merged(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Merge state rows into one row per window."""
        return self.panes.merge(rows)


def wake_of(spec: WindowSpec, end: pl.Expr, watermark_ms: int) -> pl.Expr:
    """Return the watermark at which a window is next due: to fire, or to be forgotten."""
    is_open = end > watermark_ms
    wake = pl.when(is_open).then(end).otherwise(end + spec.lateness_ms)
    if "__tick" not in spec.state_types:
        return wake
    # A tick fires when the watermark is past it; there are none after the end of the window.
    return pl.when(is_open).then(pl.min_horizontal(wake, pl.col("__tick") + 1)).otherwise(wake)


def describe(rows: pl.DataFrame, spec: WindowSpec, watermark_ms: int) -> dict[str, Any]:
    """Return the fields of the index entry for `rows`, which are stored at the watermark `watermark_ms`."""
    end, open_ = pl.col("__end"), pl.col("__end") > watermark_ms
    wake = wake_of(spec, end, watermark_ms)
    due = pl.lit(None, dtype=pl.Int64)
    if "__due" in rows.columns:
        # A due pane shows nothing if no row is new, or after the on-time pane, which ends panes by processing time.
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
