"""Tumbling windows: consecutive windows of a fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.operators.windows.aligned import AlignedWindow
from slackwater.operators.windows.sizes import checked_offset, floor, shown_offset


@dataclass(frozen=True, kw_only=True)
class TumblingWindow(AlignedWindow):
    """Consecutive windows of a fixed size: [k * size + offset, (k + 1) * size + offset)."""

    size_ms: int
    offset_ms: int = 0

    is_trusted: ClassVar[bool] = True

    @property
    def cell_names(self) -> tuple[str, ...]:
        """The start, which identifies a window of fixed size."""
        return ("__start",)

    def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Return the window of an event at `ts`."""
        start = floor(ts, self.size_ms, self.offset_ms)
        return start, start + self.size_ms

    def implied(self) -> list[pl.Expr]:
        """Return the end and the number of windows, 1."""
        return [(pl.col("__start") + self.size_ms).alias("__end"), *super().implied()]

    def longest_ms(self) -> int:
        """Return the size."""
        return self.size_ms

    def __str__(self) -> str:
        return f"tumbling {render_ms(self.size_ms)}" + shown_offset(self.offset_ms)


def tumbling(size: Duration, *, offset: Duration = "0s") -> TumblingWindow:
    """Fixed-size windows, side by side: `tumbling("1m")`, `tumbling("1d", offset="-8h")`."""
    size_ms = duration_ms(size, what="tumbling window `size`")
    return TumblingWindow(size_ms=size_ms, offset_ms=checked_offset(offset, size_ms, "tumbling", "size"))
