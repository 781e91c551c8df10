"""The windows of rows, computed once per cell: the rows that share all their windows."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from slackwater.operators.windows.aligned import AlignedWindow
from slackwater.operators.windows.front import CELL


@dataclass(frozen=True)
class Celled:
    """Rows (with `__ts`), each with the number of its cell in `__cell`, and the windows of every cell."""

    rows: pl.DataFrame
    windows: pl.DataFrame
    """One row per cell and window: `__cell`, `__start`, `__end`."""

    @classmethod
    def of(cls, rows: pl.DataFrame, window: AlignedWindow) -> Celled:
        """Return `rows` with their windows of kind `window`; the cell of a row without windows is not in `windows`."""
        names = [*CELL]
        placed = rows.drop(names, strict=False).with_columns(window.cell(pl.col("__ts")))
        cells = placed.select(names).unique(maintain_order=True).with_row_index("__cell")
        numbered = placed.join(cells, on=names, how="left", maintain_order="left")
        return cls(numbered, window.spread(cells).select("__cell", "__start", "__end"))

    def per_row(self, **facts: pl.Expr) -> pl.DataFrame:
        """Return `facts` for each row: expressions over `__start` and `__end` of all its windows."""
        found = self.windows.group_by("__cell").agg(**facts)
        return self.rows.select("__cell").join(found, on="__cell", how="left", maintain_order="left").drop("__cell")

    def within(self, is_wanted: pl.Expr) -> pl.DataFrame:
        """Return one row per row and wanted window; `__start` and `__end` become the bounds of the window."""
        wanted = self.windows.filter(is_wanted)
        return self.rows.drop("__start", "__end", "__many").join(wanted, on="__cell", maintain_order="left_right")
