"""Every metric of a scripted run against the truth, which is worked out by hand.

now      0 s             10 s            20 s
batch    0               1               2
part 0   -300 -290       0 0 (a bot)       -250 (forgotten: late)  -100 (corrects)  +25 (ahead)  +2 h (dead)
part 1   -305            -10
watermark after it -315  -20             -20, held by partition 1
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.connectors.delivery_stats import SinkStats
from slackwater.connectors.intake import Lag
from slackwater.engine.alignment import Ahead
from slackwater.observe.metrics.families import FAMILIES
from slackwater.observe.metrics.monitor import Live, Monitor
from slackwater.observe.metrics.report import BatchReport
from slackwater.testing import Harness

NOW = 1_767_225_600_000
DELIVERED_MS = 250
Samples = dict[tuple[str, ...], float]


class Cities:
    """A store that fails once, when it is asked for cyd."""

    has_failed = False

    async def __call__(self, user: str) -> dict[str, str]:
        if user == "cyd" and not self.has_failed:
            self.has_failed = True
            raise ValueError("busy")
        return {"city": "Kiel"}


class Script:
    """Runs the batches, as a driver does that needs 250 ms to deliver and 50 ms more."""

    def __init__(self, checkpoint: Path) -> None:
        orders = sw.stream("orders", sw.testing.rows_source("user string, t long"))
        timed = orders.event_time("t", out_of_orderness="10s", max_ahead="1h")
        people = timed.where("user <> 'bot'")
        asked = people.lookup(sw.lookups.function(Cities()), key="user", output="city string", name="city")
        counts = asked.key_by("user").window(sw.tumbling("1m"), allowed_lateness="2m", name="minutes")
        results = counts.aggregate(n=sw.count())
        ends = [each.to(sw.sinks.memory()) for each in (asked, results, results.late, timed.dead_letters)]
        self.harness = Harness(sw.Pipeline("shop", *ends, key_groups=1), now=NOW)
        self.lives: list[Live] = []
        self.monitor = Monitor(
            plan=self.harness.plan,
            checkpoint=checkpoint,
            on_record=self.lives.append,
            clock_s=lambda: (self.harness.now_ms + DELIVERED_MS + 50) / 1_000,
        )

    def batch(self, at_s: int, **parts: list[tuple[str, int]]) -> None:
        """Run a batch at a time over (user, event time) of partitions, all in seconds from the beginning."""
        harness, clock = self.harness, self.harness.clock
        harness.now_ms = NOW + 1_000 * at_s
        for part, rows in parts.items():
            sent = [{"user": user, "t": NOW + 1_000 * t} for user, t in rows]
            harness.send("orders", sent, partition=part.removeprefix("p"))
        shown = harness.run_batch()
        report = BatchReport(
            batch=clock.batch,
            seconds=0.5,
            stats=harness.last,
            clock=clock,
            next_clock=harness.clock,
            rows_out={name: rows.height for name, rows in shown.items()},
            lag={"orders": {"0": Lag(records=7, per_second=1.5)}},
            ahead={"orders": Ahead(of="payments", by_ms=60_000)},
            timings_s={"front": 0.2, "keyed": 0.1, "sinks": 0.15, "clock": 0.05},
        )
        sinks = {
            "minutes to memory": SinkStats(
                output="minutes", rows=2, seconds=0.1, waited_s=0.04, retries=1, last_batch=3
            )
        }
        self.monitor.note(
            report, delivered_at_ms=harness.now_ms + DELIVERED_MS, sinks=sinks, spark_s={"queryPlanning": 0.02}
        )


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    made = Script(tmp_path_factory.mktemp("checkpoint"))
    made.batch(0, p0=[("ada", -300), ("bob", -290)], p1=[("ada", -305)])
    made.batch(10, p0=[("ada", 0), ("bot", 0)], p1=[("bob", -10)])
    made.batch(20, p0=[("ada", -250), ("bob", -100), ("cyd", 25), ("dan", 7_220)])
    yield made
    made.monitor.close()


def quantiles(*values: float) -> dict[str, float]:
    """Return those of a few values, in order: of two that a quantile is between, the lower one."""
    return {str(q): values[int(q * (len(values) - 1))] for q in (0.5, 0.95, 0.99)}


def latency(output: str, since: str, *values: float) -> Samples:
    return {(output, q, since): value + DELIVERED_MS / 1_000 for q, value in quantiles(*values).items()}


ROWS, LATE, DEAD = "orders.rows", "minutes.late", "orders.dead_letters"
TRUTH: dict[str, Samples] = {
    "slackwater_batches_total": {(): 3},
    "slackwater_batch_seconds": {("front",): 0.2, ("keyed",): 0.1, ("sinks",): 0.15, ("clock",): 0.05, ("total",): 0.5},
    "slackwater_spark_seconds": {("queryPlanning",): 0.02},
    "slackwater_rows_total": {("orders",): 10},
    "slackwater_rows_out_total": {(ROWS,): 8, ("minutes",): 4, (LATE,): 1, (DEAD,): 1},
    "slackwater_late_rows_total": {("minutes",): 1},
    "slackwater_refired_rows_total": {("minutes",): 1},
    "slackwater_ignored_rows_total": {("minutes",): 0},  # `test_prometheus.py` has some
    "slackwater_filtered_rows_total": {("orders",): 1, ("minutes",): 0},
    "slackwater_dead_letters_total": {("orders", "ahead_of_clock"): 1},
    "slackwater_watermark_timestamp_seconds": {("orders",): NOW / 1_000 - 20},
    "slackwater_watermark_lag_seconds": {("orders",): 40},
    "slackwater_partition_watermark_lag_seconds": {("orders", "0"): 5, ("orders", "1"): 40},
    "slackwater_partition_idle": {("orders", "0"): 0, ("orders", "1"): 0},
    "slackwater_stream_set_aside": {("orders",): 0},
    "slackwater_partition_holds_watermark": {("orders", "0"): 0, ("orders", "1"): 1},
    "slackwater_watermark_held_since_timestamp_seconds": {("orders",): NOW / 1_000},
    "slackwater_consumer_lag_records": {("orders", "0"): 7},
    "slackwater_consumer_lag_growth": {("orders", "0"): 1.5},
    "slackwater_latency_seconds": {
        **latency(ROWS, "event", 0, 120, 270),
        **latency(ROWS, "ingestion", 0),
        **latency("minutes", "event", 80, 260, 260, 320),
        **latency(LATE, "event", 270),
        **latency(LATE, "ingestion", 0),
    },
    "slackwater_state_rows": {("minutes",): 4},
    "slackwater_state_keys_estimate": {("minutes",): 3},
    "slackwater_state_open_rows": {("minutes",): 3},
    "slackwater_largest_key_share": {},  # windows take their rows combined; `test_prometheus.py` has one
    "slackwater_sink_seconds": {("minutes to memory",): 0.1},
    "slackwater_sink_retries_total": {("minutes to memory",): 3},
    "slackwater_sink_wait_seconds_total": {("minutes to memory",): 0.12},
    "slackwater_starts_total": {(): 1},
    "slackwater_rows_ahead_of_clock_total": {("orders",): 1},
    "slackwater_lateness_seconds": {("orders", q): value for q, value in quantiles(0, 100, 250).items()},
    "slackwater_out_of_orderness_seconds": {("orders",): 10},
    "slackwater_stream_waits": {("orders",): 1},
    "slackwater_lookup_requests_total": {("city",): 4},  # one for each user, and one again
    "slackwater_lookup_keys_total": {("city", "hit"): 5, ("city", "miss"): 3},
    "slackwater_lookup_errors_total": {("city",): 1},
    "slackwater_last_batch_timestamp_seconds": {(): NOW / 1_000 + 20.3},
    "slackwater_export_failures_total": {},  # nothing is exported; `test_otlp.py` has failures
}
"""Ages come from sketches: within 1 %."""
MEASURED = {"slackwater_state_bytes", "slackwater_lookup_seconds"}
"""Those that are known only by measuring."""


def figures(script: Script, name: str) -> Samples:
    [family] = [family for family in FAMILIES if family.name == name]
    return {labels: value for labels, value in family.samples(script.lives[-1]) if value is not None}


@pytest.mark.parametrize("name", TRUTH)
def test_metric_of_a_scripted_run_is_the_truth(name: str, script: Script) -> None:
    assert figures(script, name) == pytest.approx(TRUTH[name], rel=0.011)


def test_bytes_are_those_of_the_blobs(script: Script) -> None:
    groups = script.harness.engine.state.values()
    held = sum(len(blob) for blobs in groups for name, blob in blobs.items() if name != "index")
    assert figures(script, "slackwater_state_bytes") == {("minutes",): held}


def test_requests_took_no_time_to_speak_of(script: Script) -> None:
    took = figures(script, "slackwater_lookup_seconds")
    assert set(took) == {("city", q) for q in ("0.5", "0.95", "0.99")}
    assert all(0 < seconds < 1 for seconds in took.values())


def test_every_metric_has_a_truth() -> None:
    assert {*TRUTH, *MEASURED} == {family.name for family in FAMILIES}
