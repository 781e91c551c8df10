"""Cumulative windows: windows that grow in steps up to a size, then start over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import refuse
from slackwater.operators.windows.aligned import AlignedWindow, cell_columns, spread_copies
from slackwater.operators.windows.sizes import check_overlap, checked_offset, floor, shown_offset


@dataclass(frozen=True, kw_only=True)
class CumulativeWindow(AlignedWindow):
    """Windows that grow by `every` within each `size`: [0, 1m), [0, 2m), … up to [0, size)."""

    size_ms: int
    every_ms: int
    offset_ms: int = 0

    is_trusted: ClassVar[bool] = True
    cells_meet: ClassVar[bool] = True

    def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Return the shortest window that contains `ts`."""
        start = floor(ts, self.size_ms, self.offset_ms)
        return start, start + ((ts - start) // self.every_ms + 1) * self.every_ms

    def cell(self, ts: pl.Expr) -> list[pl.Expr]:
        """Return the shortest window that contains `ts`, and the number of all windows that do."""
        start, end = self.bounds(ts)
        return cell_columns(start, end, self._many(start, end))

    def implied(self) -> list[pl.Expr]:
        """Return the number of windows of a cell."""
        return [self._many(pl.col("__start"), pl.col("__end")).alias("__many")]

    def last_end(self) -> pl.Expr:
        """Return the end of the longest window."""
        return pl.col("__end") + (pl.col("__many") - 1) * self.every_ms

    def spread(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Return the shortest and all longer windows of each cell."""
        return spread_copies(cells, [pl.col("__end") + pl.col("__copy") * self.every_ms])

    def missed(self) -> tuple[pl.Expr, pl.Expr]:
        """Return all windows of a late row."""
        copies = pl.int_ranges(0, pl.col("__many"))
        return pl.col("__start") + copies * 0, pl.col("__end") + copies * self.every_ms

    def _many(self, start: pl.Expr, end: pl.Expr) -> pl.Expr:
        return (start + self.size_ms - end) // self.every_ms + 1

    def longest_ms(self) -> int:
        """Return the size."""
        return self.size_ms

    def __str__(self) -> str:
        return f"cumulative {render_ms(self.size_ms)} by {render_ms(self.every_ms)}" + shown_offset(self.offset_ms)


def cumulative(size: Duration, *, every: Duration, offset: Duration = "0s") -> CumulativeWindow:
    """Windows that grow by `every` up to `size`, then start over: `cumulative("1d", every="1h")`."""
    size_ms = duration_ms(size, what="cumulative window `size`")
    every_ms = duration_ms(every, what="cumulative window `every`")
    if size_ms % every_ms:
        raise refuse("CUMULATIVE_UNEVEN", size=render_ms(size_ms), every=render_ms(every_ms))
    check_overlap("cumulative", size_ms, every_ms)
    offset_ms = checked_offset(offset, size_ms, "cumulative", "size")
    return CumulativeWindow(size_ms=size_ms, every_ms=every_ms, offset_ms=offset_ms)
