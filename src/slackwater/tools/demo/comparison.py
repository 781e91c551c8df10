"""Comparing the emitted windows with windows recomputed from the raw log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.base.errors import counted

_WINDOW: Final = ["user_id", "window_start"]
ROWS: Final = pl.Schema(
    {
        "user_id": pl.String(),
        "window_start": pl.Datetime("us", "UTC"),
        "window_end": pl.Datetime("us", "UTC"),
        "purchases": pl.Int64(),
        "cents": pl.Int64(),
        "pane_index": pl.Int64(),
    }
)
"""The columns of purchases per user and minute that are read back from any place."""


@dataclass(frozen=True, kw_only=True)
class ReadBack:
    """The rows that a stock client reads from the place that the demo wrote to."""

    title: str
    rows: pl.DataFrame
    keeps_panes: bool
    """Whether the place keeps every pane of a window, or only the newest."""


@dataclass(frozen=True, kw_only=True)
class PlaceAccount:
    """The comparison of a place with the recomputation."""

    title: str
    rows: int
    windows: int
    keeps_panes: bool
    missing: int
    """Missing windows, and missing panes before a window's newest."""
    doubled: int
    wrong: int
    """Windows whose newest pane has a different value."""
    foreign: int
    """Windows that are not in the log."""

    @property
    def is_right(self) -> bool:
        """Whether the place has exactly the recomputed windows."""
        return not (self.missing or self.doubled or self.wrong or self.foreign)

    def __str__(self) -> str:
        if not self.is_right:
            faults = {
                "missing": self.missing,
                "duplicated": self.doubled,
                "wrong": self.wrong,
                "for no window in the log": self.foreign,
            }
            text = ", ".join(f"{number:,} {fault}" for fault, number in faults.items() if number)
            return f"{self.title}: of {counted(self.rows, 'row')} for {counted(self.windows, 'window')}, {text}"
        if self.keeps_panes:
            panes = f"{counted(self.rows, 'pane')} of {counted(self.windows, 'window')}"
            return f"{self.title}: {panes}, the newest of each as recomputed"
        return f"{self.title}: {counted(self.rows, 'row')}, each as recomputed"


def last_panes(results: pl.DataFrame, *, keys: list[str]) -> pl.DataFrame:
    """Return the last pane of each window."""
    if results.is_empty():
        return results
    return results.sort("pane_index").unique(keys, keep="last", maintain_order=True)


def count_differences(recomputed: pl.DataFrame, shown: pl.DataFrame) -> int:
    """Return how many windows are missing, superfluous, or have a different value."""
    if shown.is_empty():
        return recomputed.height
    keys, values = recomputed.columns[:3], recomputed.columns[3:]
    both = recomputed.join(shown.select(recomputed.columns), on=keys, how="full", suffix="_shown")
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_shown")) for name in [*keys, *values])
    return both.filter(~same).height


def compare_place(recomputed: pl.DataFrame, read: ReadBack) -> PlaceAccount:
    """Compare a place with the recomputed windows; each difference is counted as one kind."""
    rows = read.rows.select(ROWS.names()).cast(ROWS)
    identity = [*_WINDOW, "pane_index"] if read.keeps_panes else _WINDOW
    values = [name for name in recomputed.columns if name not in _WINDOW]
    newest = last_panes(rows, keys=_WINDOW)
    both = recomputed.join(newest, on=_WINDOW, how="full", suffix="_there", nulls_equal=True)
    is_missing, is_foreign = pl.col("pane_index").is_null(), pl.col("purchases").is_null()
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_there")) for name in values)
    return PlaceAccount(
        title=read.title,
        rows=rows.height,
        windows=recomputed.height,
        keeps_panes=read.keeps_panes,
        missing=both.filter(is_missing).height + (_skipped(rows) if read.keeps_panes else 0),
        doubled=rows.height - rows.n_unique(identity),
        wrong=both.filter(differs & ~is_missing & ~is_foreign).height,
        foreign=both.filter(is_foreign).height,
    )


def _skipped(rows: pl.DataFrame) -> int:
    """Return how many panes before the newest are missing; panes are numbered from 0 in each window."""
    panes = pl.col("pane_index")
    return int(rows.group_by(_WINDOW).agg(panes.max() + 1 - panes.n_unique())["pane_index"].sum())
