"""The report of a batch, for people and for metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.base.errors import counted
from slackwater.base.html import facts_table
from slackwater.base.times import MIN_MS, render_time
from slackwater.connectors.intake import Lag
from slackwater.engine.alignment import Ahead
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.enrichment.stats import LookupStats
from slackwater.eventtime.clock import Clock
from slackwater.eventtime.watermark import held_back_ms, slowest_ms


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The partition that holds back a stream's watermark."""

    stream: str
    partition: str
    behind_ms: int
    """How much further the watermark would be if the next slowest partition determined it."""
    since_ms: int
    """The time of the batch in which it became the slowest."""
    has_records: bool
    """False for a partition that never had any usable records."""
    is_unread: bool = False
    """Whether a bounded run has yet to read it to its end; nothing else holds back the watermark of such a run."""
    idle_after_ms: int | None = None
    """After how long without records it becomes idle; None for never."""


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchReport:
    """The report of a delivered batch."""

    batch: int
    seconds: float
    stats: BatchStats
    clock: Clock
    next_clock: Clock
    rows_out: dict[str, int]
    lag: dict[str, dict[str, Lag]] = field(default_factory=dict)
    """Per Kafka stream and partition: the unread records, and how fast their number grows."""
    idle_after_ms: dict[str, int | None] = field(default_factory=dict)
    """Per stream, after how long without records a partition no longer holds back the watermark."""
    is_bounded: bool = False
    ahead: dict[str, Ahead] = field(default_factory=dict)
    """The streams that the next batch does not read, because they are too far ahead of others."""
    timings_s: dict[str, float] = field(default_factory=dict)
    """The parts of `seconds`: "front", "keyed", "sinks", "clock"."""

    def __repr__(self) -> str:
        facts = [text if name in ("rows", "took") else f"{name} {text}" for name, text in self._facts.items()]
        return f"<batch {self.batch}: {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        """Return the batch in figures, for display in a notebook."""
        return facts_table(f"batch {self.batch:,}", self._facts)

    @property
    def _facts(self) -> dict[str, str]:
        out = " and ".join(f"{rows:,} of {name}" for name, rows in self.rows_out.items() if rows)
        facts = {
            "rows": f"{counted(self.rows, 'row')} in",
            "out": out or "no rows",
            "late": f"{self.total('late'):,}",
            "dead letters": f"{self.dead_letters:,}",
            "filtered": f"{self.filtered:,}",
            "watermark": f"{render_time(self.watermark_ms)}",
            "held back by": ", ".join(holder.partition for holder in self.holders[:1]),
            "took": f"{self.seconds:.2f} s",
        }
        return {name: text for name, text in facts.items() if text and (text != "0" or name != "filtered")}

    @property
    def rows(self) -> int:
        """Rows read from all sources."""
        return sum(stream.rows for stream in self.stats.streams.values())

    @property
    def dead_letters(self) -> int:
        """Records, results and timers that became dead letters."""
        of_steps = sum(self.total(what) for what in ("dead", "dead_results", "failed_timers", "failed_in_state"))
        return sum(stream.dead for stream in self.stats.streams.values()) + of_steps

    @property
    def filtered(self) -> int:
        """Rows that `where` or `map` removed, from sources and from results."""
        return sum(stream.filtered for stream in self.stats.streams.values()) + self.total("filtered")

    @property
    def added(self) -> int:
        """Rows that `map` returned in excess of those it was given."""
        return sum(stream.added for stream in self.stats.streams.values()) + self.total("added")

    def total(self, what: str) -> int:
        """Return a count, summed over all steps: "panes", "late", "on_time", "refired" and so on."""
        return sum(counts[what] for counts in self.stats.counts.values())

    @property
    def lag_records(self) -> int:
        """Unread records in Kafka, over all streams."""
        return sum(lag.records for stream in self.lag.values() for lag in stream.values())

    @property
    def lookups(self) -> dict[str, LookupStats]:
        """The statistics of each lookup step: requests, keys from the cache and from the store, errors, latency."""
        return self.stats.lookups

    @property
    def holders(self) -> list[Holder]:
        """The partitions that hold back a watermark while others are further ahead, the worst first."""
        found = [
            Holder(
                stream=name,
                partition=time.held_by,
                behind_ms=behind,
                since_ms=time.held_since_ms,
                has_records=time.partitions[time.held_by].max_ts_ms > MIN_MS,
                is_unread=self.is_bounded,
                idle_after_ms=self.idle_after_ms.get(name),
            )
            for name, time in self.next_clock.streams.items()
            if (behind := held_back_ms(time)) > 0
        ]
        return sorted(found, key=lambda holder: -holder.behind_ms)

    @property
    def watermark_ms(self) -> int:
        """The watermark in the next batch of the slowest stream that is not set aside."""
        return slowest_ms(self.next_clock.streams.values())
