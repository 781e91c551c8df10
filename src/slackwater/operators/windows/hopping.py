"""Hopping windows: fixed-size windows that start at regular intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.operators.windows.aligned import AlignedWindow, cell_columns, spread_copies
from slackwater.operators.windows.sizes import check_overlap, checked_offset, floor, shown_offset


@dataclass(frozen=True, kw_only=True)
class HoppingWindow(AlignedWindow):
    """Fixed-size windows, one starting `every` interval; they overlap, or leave gaps if every > size."""

    size_ms: int
    every_ms: int
    offset_ms: int = 0

    is_trusted: ClassVar[bool] = True
    cells_meet: ClassVar[bool] = True

    @property
    def cell_names(self) -> tuple[str, ...]:
        """The start of the newest window, and the number of windows if it varies."""
        return ("__start",) if self.size_ms % self.every_ms == 0 else ("__start", "__many")

    def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Return the newest window that starts at or before `ts`."""
        start = floor(ts, self.every_ms, self.offset_ms)
        return start, start + self.size_ms

    def cell(self, ts: pl.Expr) -> list[pl.Expr]:
        """Return the newest window, and the number of windows that contain `ts`."""
        start, end = self.bounds(ts)
        return cell_columns(start, end, (self.size_ms - (ts - start) + self.every_ms - 1) // self.every_ms)

    def implied(self) -> list[pl.Expr]:
        """Return the end, and the number of windows if it is constant."""
        many = pl.lit(self.size_ms // self.every_ms, dtype=pl.Int64).alias("__many")
        return [(pl.col("__start") + self.size_ms).alias("__end"), *([] if "__many" in self.cell_names else [many])]

    def spread(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Return the newest window of each cell and the earlier ones."""
        shift = pl.col("__copy") * self.every_ms
        return spread_copies(cells, [pl.col("__start") - shift, pl.col("__end") - shift])

    def missed(self) -> tuple[pl.Expr, pl.Expr]:
        """Return all windows of a late row."""
        shift = pl.int_ranges(0, pl.col("__many")) * self.every_ms
        return pl.col("__start") - shift, pl.col("__end") - shift

    def longest_ms(self) -> int:
        """Return the size."""
        return self.size_ms

    def __str__(self) -> str:
        return f"hopping {render_ms(self.size_ms)} every {render_ms(self.every_ms)}" + shown_offset(self.offset_ms)


def hopping(size: Duration, *, every: Duration, offset: Duration = "0s") -> HoppingWindow:
    """Fixed-size windows, one starting `every` interval: `hopping("10m", every="1m")`."""
    size_ms = duration_ms(size, what="hopping window `size`")
    every_ms = duration_ms(every, what="hopping window `every`")
    check_overlap("hopping", size_ms, every_ms)
    offset_ms = checked_offset(offset, every_ms, "hopping", "every")
    return HoppingWindow(size_ms=size_ms, every_ms=every_ms, offset_ms=offset_ms)
