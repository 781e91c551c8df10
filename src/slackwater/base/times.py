"""Timestamps: in UTC with microseconds for users, integer milliseconds since the epoch internally."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import polars as pl

TIMESTAMP: Final = pl.Datetime("us", "UTC")
MIN_MS: Final = -(1 << 60)
"""The watermark before anything is known, and the start of the global window."""
MAX_MS: Final = 1 << 60
"""The final watermark of a bounded run, and the end of the global window."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_USABLE_MS: Final = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
LAST_USABLE_MS: Final = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def to_timestamp(milliseconds: pl.Expr) -> pl.Expr:
    """Return epoch milliseconds as a timestamp; the start of time becomes null, its end the year 9999."""
    usable = pl.when(milliseconds > MIN_MS).then(milliseconds.clip(FIRST_USABLE_MS, LAST_USABLE_MS))
    return (usable * 1_000).cast(TIMESTAMP)


def timestamp_lit(milliseconds: int) -> pl.Expr:
    """Return one point in time as a timestamp literal."""
    return to_timestamp(pl.lit(milliseconds, dtype=pl.Int64))


def render_time(milliseconds: int) -> str:
    """Return a point in time as readable text: 2026-03-01 12:00:00.000, or "none yet" / "end of time"."""
    if milliseconds <= MIN_MS:
        return "none yet"
    if milliseconds > LAST_USABLE_MS:
        return "end of time"
    moment = EPOCH + timedelta(milliseconds=max(milliseconds, FIRST_USABLE_MS))
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
