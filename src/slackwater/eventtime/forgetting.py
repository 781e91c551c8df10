"""The verdict on state: when it may go.

As for lateness, an end is compared with a watermark: the first instant after a window, or the millisecond after a
single instant.
"""

from __future__ import annotations

from typing import TypeVar, overload

import polars as pl

Column = TypeVar("Column", pl.Series, pl.Expr)


@overload
def is_forgotten(end: Column, watermark_ms: int, kept_ms: int = 0) -> Column: ...
@overload
def is_forgotten(end: int, watermark_ms: int, kept_ms: int = 0) -> bool: ...
def is_forgotten(end: pl.Series | pl.Expr | int, watermark_ms: int, kept_ms: int = 0) -> pl.Series | pl.Expr | bool:
    """Return which state may go: the watermark has passed its end by the time for which it is kept."""
    return end + kept_ms <= watermark_ms
