"""What a sink did in one batch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SinkStats:
    """What one sink was given in a batch, and how long that took on the driver."""

    output: str
    rows: int = 0
    seconds: float = 0.0
    """From the first call to the commit, waits included."""
    waited_s: float = 0.0
    """How much of it was spent waiting for a sink that was away."""
    retries: int = 0
    """How often it was tried again; executors, which write large outputs, do not report theirs."""
    last_batch: int | None = None
    """The last batch that it has rows of; a batch without rows for it leaves it alone."""
