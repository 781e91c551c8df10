"""Statistics of one sink in one batch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SinkStats:
    """The rows that a sink received in a batch, and how long that took on the driver."""

    output: str
    rows: int = 0
    seconds: float = 0.0
    """From the first call to the commit, waits included."""
    waited_s: float = 0.0
    """How much of it was spent waiting for an unavailable sink."""
    retries: int = 0
    """The number of retries; executors, which write large outputs, do not report theirs."""
    last_batch: int | None = None
    """The last batch whose rows the sink has; a batch without rows for the sink does not touch it."""
