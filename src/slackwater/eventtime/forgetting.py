"""The verdict on state: when it may go.

As for lateness, an end is compared with a watermark: the first instant after a window, or the millisecond after a
single instant.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt
import polars as pl

Column = TypeVar("Column", pl.Series, pl.Expr)
Integers = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.bool_]


@overload
def is_forgotten(end: Column, watermark_ms: int, kept_ms: int = 0) -> Column: ...
@overload
def is_forgotten(end: pl.Expr, watermark_ms: pl.Expr, kept_ms: int = 0) -> pl.Expr: ...
@overload
def is_forgotten(end: Integers, watermark_ms: int, kept_ms: int = 0) -> Flags: ...
@overload
def is_forgotten(end: int, watermark_ms: int, kept_ms: int = 0) -> bool: ...
def is_forgotten(
    end: pl.Series | pl.Expr | Integers | int, watermark_ms: int | pl.Expr, kept_ms: int = 0
) -> pl.Series | pl.Expr | Flags | bool:
    """Return which state may go: the watermark has passed its end by the time for which it is kept.

    State that lives by processing time is compared with the processing time instead.
    """
    return end <= watermark_ms - kept_ms
