"""Which windows a row belongs to: first its cell, then the windows of that cell.

A cell is a set of rows that share all their windows, so rows are combined per cell before they are
copied into the windows that overlap there.
"""

from __future__ import annotations

import polars as pl

from slackwater.ground.times import MAX_MS, MIN_MS
from slackwater.windows.definitions import (
    CumulativeWindow,
    GlobalWindow,
    HoppingWindow,
    TumblingWindow,
)

AlignedWindow = TumblingWindow | HoppingWindow | CumulativeWindow | GlobalWindow

CELL = ("__start", "__end", "__many")
"""Columns of a cell: its newest window (hopping) or shortest (cumulative), and how many it has."""


def _floor(ts: pl.Expr, step_ms: int, offset_ms: int) -> pl.Expr:
    return ts - (ts - offset_ms).mod(step_ms)


def cell_exprs(window: AlignedWindow, ts: pl.Expr) -> list[pl.Expr]:
    """Return the expressions of the columns `CELL` for event times `ts` (ms)."""
    match window:
        case TumblingWindow(size_ms=size, offset_ms=offset):
            start, end, many = _floor(ts, size, offset), _floor(ts, size, offset) + size, pl.lit(1)
        case HoppingWindow(size_ms=size, every_ms=every, offset_ms=offset):
            start = _floor(ts, every, offset)
            # Windows start at `start`, `start - every`, …; those that end after `ts` hold it.
            end, many = start + size, (size - (ts - start) + every - 1) // every
        case CumulativeWindow(size_ms=size, every_ms=every, offset_ms=offset):
            start = _floor(ts, size, offset)
            end = start + ((ts - start) // every + 1) * every
            many = (start + size - end) // every + 1
        case GlobalWindow():
            start, end, many = pl.lit(MIN_MS), pl.lit(MAX_MS), pl.lit(1)
    return [
        start.cast(pl.Int64).alias("__start"),
        end.cast(pl.Int64).alias("__end"),
        many.cast(pl.Int64).clip(lower_bound=0).alias("__many"),
    ]


def cell_names(window: AlignedWindow) -> tuple[str, ...]:
    """Return the columns that tell the cells of `window` apart; the other ones follow from them."""
    match window:
        case TumblingWindow() | GlobalWindow():
            return ("__start",)
        case HoppingWindow(size_ms=size, every_ms=every):
            return ("__start",) if size % every == 0 else ("__start", "__many")
        case CumulativeWindow():
            return ("__start", "__end")


def implied_exprs(window: AlignedWindow) -> list[pl.Expr]:
    """Return the expressions of the columns of `CELL` that `cell_names` leaves out."""
    start, one = pl.col("__start"), pl.lit(1, dtype=pl.Int64)
    match window:
        case TumblingWindow(size_ms=size):
            return [(start + size).alias("__end"), one.alias("__many")]
        case HoppingWindow(size_ms=size, every_ms=every):
            many = [pl.lit(size // every, dtype=pl.Int64).alias("__many")] if size % every == 0 else []
            return [(start + size).alias("__end"), *many]
        case CumulativeWindow(size_ms=size, every_ms=every):
            return [((start + size - pl.col("__end")) // every + 1).alias("__many")]
        case GlobalWindow():
            return [pl.lit(MAX_MS, dtype=pl.Int64).alias("__end"), one.alias("__many")]


def last_end_expr(window: AlignedWindow) -> pl.Expr:
    """Return the end of a cell's last window: once that is forgotten, so are all its windows."""
    if isinstance(window, CumulativeWindow):
        return pl.col("__end") + (pl.col("__many") - 1) * window.every_ms
    return pl.col("__end")


def spread(cells: pl.DataFrame, window: AlignedWindow) -> pl.DataFrame:
    """Return one row per cell and window: `__start` and `__end` become the window's."""
    if isinstance(window, TumblingWindow | GlobalWindow):
        return cells.drop("__many")
    copies = cells.with_columns(pl.int_ranges(0, pl.col("__many")).alias("__copy")).explode("__copy")
    copies = copies.filter(pl.col("__copy").is_not_null())
    shift = pl.col("__copy") * window.every_ms
    if isinstance(window, HoppingWindow):
        moved = [pl.col("__start") - shift, pl.col("__end") - shift]
    else:
        moved = [pl.col("__end") + shift]
    return copies.with_columns(moved).drop("__many", "__copy")


def windows_of(window: AlignedWindow, ts_ms: int) -> list[tuple[int, int]]:
    """Return the windows of one event time as (start, end) in milliseconds, oldest first."""
    one = pl.DataFrame({"__ts": [ts_ms]}, schema={"__ts": pl.Int64})
    cells = one.select(cell_exprs(window, pl.col("__ts")))
    return sorted(spread(cells, window).select("__start", "__end").rows())
