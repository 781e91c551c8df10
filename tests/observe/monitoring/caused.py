"""Jobs in memory, by the minute, with the monitor of a driver; what Prometheus would scrape of them is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import slackwater as sw
from slackwater.connectors.delivery_stats import SinkStats
from slackwater.observe.metrics.monitor import Monitor
from slackwater.observe.metrics.prometheus import Collector, exposition
from slackwater.observe.metrics.report import BatchReport
from slackwater.testing import Harness

MINUTE_MS = 60_000
ROWS = 50


class Scrapes:
    """What one Prometheus has seen of a job: a value a minute, or none."""

    def __init__(self) -> None:
        self.minutes = 0
        self._seen: dict[str, dict[int, float]] = {}

    def take(self, text: str | None) -> None:
        """Keep a scrape; None for one that found nobody."""
        for family in [] if text is None else text_string_to_metric_families(text):
            for sample in family.samples:
                labels = ",".join(f"{name}={json.dumps(value)}" for name, value in sample.labels.items())
                self._seen.setdefault(f"{sample.name}{{{labels}}}", {})[self.minutes] = sample.value
        self.minutes += 1

    @property
    def series(self) -> dict[str, str]:
        """The scrapes in promtool's notation."""
        return {
            name: " ".join(str(values[at]) if at in values else "_" for at in range(self.minutes))
            for name, values in self._seen.items()
        }


class Caused:
    """A shop whose pipeline counts by user and minute, and whatever goes wrong in it."""

    def __init__(self, checkpoint: Path, *, max_ahead: str | None = None, leaks: bool = False) -> None:
        orders = sw.stream("orders", sw.sources.log("log")).decode(sw.formats.json("user string, t long"))
        timed = orders.event_time("t", out_of_orderness="10s", max_ahead=max_ahead)
        # With a year until it is complete, a window by user remembers every user that ever was.
        window = sw.tumbling("365d" if leaks else "1m")
        counted = timed.key_by("user").window(window, name="per_minute").aggregate(n=sw.count())
        outputs = [counted.to(sw.sinks.memory()), counted.late.drop(), timed.dead_letters.drop()]
        # Prometheus' tool begins at the epoch, and the job a minute later: none of its rows is from before.
        self.harness = Harness(sw.Pipeline("shop", *outputs, key_groups=1), now=MINUTE_MS)
        self.checkpoint = checkpoint
        self.scrapes = Scrapes()
        self.scrapes.take(None)
        self.sink_s = 0.1
        self.start()

    def start(self) -> None:
        """Start the job, again if it was started before: another process, on the same checkpoint."""
        self._collector = Collector()
        self._monitor = Monitor(
            plan=self.harness.plan,
            checkpoint=self.checkpoint,
            on_record=self._collector.note,
            on_run=self._collector.note,
            clock_s=lambda: self.harness.now_ms / 1_000,
        )

    def crash(self) -> None:
        """End the job, start it again, and scrape it while it is in its first batch."""
        self._monitor.close()
        self.start()
        self._scrape()

    def minute(
        self, *, partitions: Iterable[str] = ("0", "1"), late_s: int = 0, bad: int = 0, ahead_s: int = 0
    ) -> None:
        """Run a batch over rows of the last minute.

        Of each partition, one row in ten is `late_s` behind, `bad` are no JSON, and one is `ahead_s` ahead of the
        clock.
        """
        now_ms = self.harness.now_ms
        for partition in partitions:
            ages_s = [2 + (late_s if number % 10 == 9 else 0) for number in range(ROWS)]
            rows = [
                json.dumps({"user": _user(f"{partition} {number} {now_ms}"), "t": now_ms - 1_000 * age})
                for number, age in enumerate(ages_s)
            ]
            rows += ["\x00 no JSON"] * bad
            if ahead_s:
                rows.insert(0, json.dumps({"user": "eve", "t": now_ms + 1_000 * ahead_s}))
            self.harness.send("orders", rows, partition=partition)
        clock = self.harness.clock
        shown = self.harness.run_batch()
        report = BatchReport(
            batch=clock.batch,
            seconds=0.5 + self.sink_s,
            stats=self.harness.last,
            clock=clock,
            next_clock=self.harness.clock,
            rows_out={name: rows.height for name, rows in shown.items()},
            timings_s={"front": 0.3, "keyed": 0.1, "sinks": self.sink_s, "clock": 0.1},
        )
        rows_out = sum(report.rows_out.values())
        sinks = {"per_minute to memory": SinkStats(output="per_minute", rows=rows_out, seconds=self.sink_s)}
        self._monitor.note(report, delivered_at_ms=now_ms, sinks=sinks, spark_s={})
        self._scrape()

    def _scrape(self) -> None:
        self.scrapes.take(exposition(self._collector).decode())
        self.harness.now_ms += MINUTE_MS

    def end(self) -> dict[str, str]:
        """End the job; returns what was seen of it."""
        self._monitor.close()
        return self.scrapes.series


def _user(seed: str) -> str:
    """Return a name that no other row has, and that does not compress."""
    return hashlib.sha256(seed.encode()).hexdigest()
