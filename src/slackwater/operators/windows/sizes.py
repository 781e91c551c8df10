"""Sizes and offsets of windows, validated when they are defined."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import refuse

_MOST_WINDOWS: Final = 100_000
"""The most windows that an event may belong to; a window of a day every second is still below."""


def floor(ts: pl.Expr, step_ms: int, offset_ms: int) -> pl.Expr:
    """Return the last multiple of `step_ms`, shifted by `offset_ms`, that is not after `ts`."""
    return ts - (ts - offset_ms).mod(step_ms)


def checked_offset(offset: Duration, period_ms: int, kind: str, period: str) -> int:
    """Return an offset in milliseconds, or reject one that is not smaller than the period."""
    offset_ms = duration_ms(offset, what=f"{kind} window `offset`", least_ms=None)
    if abs(offset_ms) >= period_ms:
        raise refuse("WINDOW_OFFSET", kind=kind, period=period, length=render_ms(period_ms), got=render_ms(offset_ms))
    return offset_ms


def check_overlap(kind: str, size_ms: int, every_ms: int) -> None:
    """Reject windows if an event would belong to too many of them."""
    if size_ms > _MOST_WINDOWS * every_ms:
        asked = -(-size_ms // every_ms)
        raise refuse("WINDOW_OVERLAP", kind=kind, got=f"{asked:,}", most=f"{_MOST_WINDOWS:,}")


def shown_offset(offset_ms: int) -> str:
    """Return an offset as shown by `explain`."""
    return f", offset {render_ms(offset_ms)}" if offset_ms else ""
