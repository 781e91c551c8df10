"""The global window: a single window for all of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.operators.windows.aligned import AlignedWindow
from slackwater.operators.windows.spec import Accumulation
from slackwater.operators.windows.triggers import Trigger, after_watermark


@dataclass(frozen=True, kw_only=True)
class GlobalWindow(AlignedWindow):
    """One window for all rows; it fires only by a trigger, or at the end of a bounded run."""

    is_trusted: ClassVar[bool] = True
    has_end: ClassVar[bool] = False

    def check_options(self, trigger: Trigger, accumulation: Accumulation) -> None:  # noqa: ARG002  any accumulation
        """Reject the default trigger, which would wait for a watermark that never comes."""
        if trigger == after_watermark():
            raise refuse("GLOBAL_NEEDS_TRIGGER")

    @property
    def cell_names(self) -> tuple[str, ...]:
        """The start, which is the same for all rows."""
        return ("__start",)

    def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:  # noqa: ARG002  the same for every time
        """Return all of time."""
        return pl.lit(MIN_MS), pl.lit(MAX_MS)

    def implied(self) -> list[pl.Expr]:
        """Return the end of time and the number of windows, 1."""
        return [pl.lit(MAX_MS, dtype=pl.Int64).alias("__end"), *super().implied()]

    def __str__(self) -> str:
        return "global"


def global_window() -> GlobalWindow:
    """A single window for all time; use a trigger such as `after_count(100)` or `every("10s")`."""
    return GlobalWindow()
