"""The thresholds above which an alert is worth waking a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The limits of the alerts. The defaults suit a job with batches of seconds or minutes."""

    stalled_after_ms: int = 10 * MINUTE_MS
    """A watermark that does not move for this long while rows arrive is stalled."""
    batch_within_ms: int = 10 * MINUTE_MS
    """A job that delivers no batch for this long hangs."""
    slow_sink_ms: int = 30_000
    """A sink that takes longer than this for a batch is slow."""
    state_growth: float = 0.2
    """State that grows steadily by this share in `state_over_ms` leaks."""
    state_over_ms: int = 6 * HOUR_MS
    state_bytes: int = 100_000_000
    """State smaller than this may grow."""
    ahead_ms: int = 10_000
    """An event time further ahead of the clock than this comes from a wrong clock."""
    dead_share: float = 0.01
    """A larger share of dead letters is a burst."""
    restarts: int = 3
    """This many starts in `restarts_within_ms` are a crash loop."""
    restarts_within_ms: int = 30 * MINUTE_MS
