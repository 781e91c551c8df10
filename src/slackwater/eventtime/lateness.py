"""The verdict on lateness: which rows are late.

An end is compared with a watermark. The end of a window is its first instant after it; the end of a single instant is
the next millisecond. A watermark that has reached an end has passed everything before it.
"""

from __future__ import annotations

from typing import TypeVar, overload

import polars as pl

from slackwater.eventtime.step_time import StepTime

Column = TypeVar("Column", pl.Series, pl.Expr)


@overload
def is_late(end: Column, time: StepTime, lateness_ms: int = 0) -> Column: ...
@overload
def is_late(end: int, time: StepTime, lateness_ms: int = 0) -> bool: ...
def is_late(end: pl.Series | pl.Expr | int, time: StepTime, lateness_ms: int = 0) -> pl.Series | pl.Expr | bool:
    """Return which rows of a batch are late, by the last end of each: the watermark is past it and the lateness.

    A row is also late if its state was forgotten in an earlier batch, under a shorter allowed lateness.
    """
    return end <= late_until_ms(time, lateness_ms)


def late_until_ms(time: StepTime, lateness_ms: int = 0) -> int:
    """Return the end up to which rows of this batch are late."""
    return max(time.judge_ms - lateness_ms, time.forgotten_ms)
