"""What a batch did, for people and for metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.engine.batch_stats import BatchStats
from slackwater.eventtime.clock import Clock


@dataclass(frozen=True, kw_only=True)
class BatchReport:
    """One batch, after it was delivered."""

    batch: int
    seconds: float
    stats: BatchStats
    clock: Clock
    next_clock: Clock
    rows_out: dict[str, int]
    timings_s: dict[str, float] = field(default_factory=dict)
    """What `seconds` is made of: "evaluate", "sinks", "clock"."""

    @property
    def rows(self) -> int:
        """Rows read from all sources."""
        return sum(stream.rows for stream in self.stats.streams.values())

    @property
    def dead_letters(self) -> int:
        """Records that became dead letters."""
        return sum(stream.dead for stream in self.stats.streams.values())

    def total(self, what: str) -> int:
        """Return a count summed over all steps: "panes", "late", "on_time", "refired" and so on."""
        return sum(counts[what] for counts in self.stats.counts.values())

    @property
    def watermark_ms(self) -> int:
        """The slowest stream's watermark, as the next batch will see it."""
        return min(time.watermark_ms for time in self.next_clock.streams.values())
