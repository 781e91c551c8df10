"""The record of a batch, from a scripted run: every figure against the truth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.connectors.delivery_stats import SinkStats
from slackwater.connectors.intake import Lag
from slackwater.engine.alignment import Ahead
from slackwater.observe.metrics.history import read_history
from slackwater.observe.metrics.monitor import Live, MetricsFile, Monitor
from slackwater.observe.metrics.record import BatchRecord, PartitionRecord
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.spark_times import parsed_times_s
from slackwater.testing import Harness

NOW = 1_767_225_600_000


def shop() -> Harness:
    orders = sw.stream("orders", sw.testing.rows_source("user string, t long"))
    timed = orders.event_time("t", out_of_orderness="10s", max_ahead="1h")
    # Whole rows go to the step, so that their keys are counted.
    counted = timed.key_by("user").window(sw.count_window(2), name="pairs").aggregate(n=sw.count())
    minutes = timed.key_by("user").window(sw.tumbling("1m")).aggregate(n=sw.count())
    outputs = [each.to(sw.sinks.memory()) for each in (timed, counted, minutes, minutes.late)]
    return Harness(sw.Pipeline("shop", *outputs, timed.dead_letters.to(sw.sinks.memory())), now=NOW)


class Recorded:
    """A run of the harness with the monitor of a driver, which needs 250 ms to deliver."""

    def __init__(self, checkpoint: Path) -> None:
        self.harness = shop()
        self.lives: list[Live] = []
        self.monitor = Monitor(
            plan=self.harness.plan,
            checkpoint=checkpoint,
            on_record=self.lives.append,
            clock_s=lambda: (self.harness.now_ms + 300) / 1_000,
        )

    def batch(self, *rows: tuple[str, int], partition: str = "0") -> BatchRecord:
        """Run a batch over rows (user, seconds before now)."""
        harness, clock = self.harness, self.harness.clock
        sent = [{"user": user, "t": harness.now_ms - 1_000 * age_s} for user, age_s in rows]
        harness.send("orders", sent, partition=partition)
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
        sinks = {"orders to memory": SinkStats(output="orders", rows=2, seconds=0.1, retries=1, last_batch=3)}
        return self.monitor.note(
            report, delivered_at_ms=harness.now_ms + 250, sinks=sinks, spark_s={"queryPlanning": 0.02}
        )


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Recorded]:
    made = Recorded(tmp_path)
    with closing(made.monitor):
        yield made


def test_record_says_when_and_how_long(run: Recorded) -> None:
    found = run.batch(("ada", 30))
    assert (found.batch, found.run, found.now_ms, found.at_ms, found.seconds) == (0, 1, NOW, NOW + 300, 0.5)
    assert found.phases_s == {"front": 0.2, "keyed": 0.1, "sinks": 0.15, "clock": 0.05}
    assert found.spark_s == {"queryPlanning": 0.02}
    sink = SinkStats(output="orders", rows=2, seconds=0.1, retries=1, last_batch=3)
    assert found.sinks == {"orders to memory": sink}


def test_record_of_a_stream_has_what_became_of_its_rows_and_its_watermark(run: Recorded) -> None:
    run.batch(("ada", 100), partition="1")
    stream = run.batch(("ada", 30), ("ada", 90), ("bob", -5), ("bob", -7_200)).streams["orders"]
    assert (stream.rows, stream.dead, stream.ahead_of_clock) == (4, {"ahead_of_clock": 1}, 1)
    assert sum(count for _, count in stream.ages) == 3
    assert (stream.watermark_ms, stream.held_by, stream.held_back_ms) == (NOW - 110_000, "1", 105_000)
    assert (stream.held_since_ms, stream.out_of_orderness_ms) == (NOW, 10_000)
    assert (stream.waits_for, stream.waits_ms, stream.lag) == ("payments", 60_000, 7)
    assert stream.lateness_s == {"0.5": 0.0, "0.95": pytest.approx(0.0), "0.99": pytest.approx(0.0)}
    assert stream.partitions == {
        "1": PartitionRecord(rows=0, max_ts_ms=NOW - 100_000),
        "0": PartitionRecord(rows=4, max_ts_ms=NOW + 5_000, lag=7, lag_per_s=1.5),
    }


def test_record_of_a_stream_without_rows_keeps_its_watermark(run: Recorded) -> None:
    run.batch(("ada", 30))
    stream = run.batch().streams["orders"]
    assert (stream.rows, stream.watermark_ms, stream.ages) == (0, NOW - 40_000, ())
    assert all(output.event_s == {} for output in run.batch().outputs.values())


def test_latency_is_the_age_of_rows_and_the_time_until_they_were_delivered(run: Recorded) -> None:
    outputs = run.batch(("ada", 30), ("ada", 30)).outputs
    [rows] = [output.name for output in run.harness.plan.outputs if output.kind == "rows"]
    assert outputs[rows].rows == 2
    assert outputs[rows].event_s == pytest.approx(dict.fromkeys(("0.5", "0.95", "0.99"), 30.25), rel=0.01)
    assert outputs[rows].ingestion_s == dict.fromkeys(("0.5", "0.95", "0.99"), 0.25)


def test_record_of_steps_has_their_counts_state_and_largest_key(run: Recorded) -> None:
    found = run.batch(("ada", 30), ("ada", 31), ("ada", 32), ("bob", 30))
    by_count = next(each for each in found.steps.values() if each.largest_share is not None)
    assert (by_count.largest_key, by_count.largest_share) == ("ada", 0.75)
    by_minute = next(each for each in found.steps.values() if each.largest_share is None)
    assert by_minute.counts["on_time"] == 4
    held = [step for step in run.harness.last.state.values() if step["rows"] == by_minute.state_rows]
    assert by_minute.state_rows == by_minute.open_rows == 2
    assert by_minute.state_bytes in [step["bytes"] for step in held]


def test_late_rows_are_counted_by_step_and_the_run_adds_up(run: Recorded) -> None:
    run.batch(("ada", 300))
    run.batch(("ada", 0))
    last = run.batch(("ada", 300), ("bob", 200))
    late = [step.counts.get("late", 0) for step in last.steps.values()]
    assert max(late) == 2
    total = run.lives[-1].total
    assert (total.batches, total.rows) == (3, 4)
    assert max(step.counts.get("on_time", 0) for step in total.steps.values()) >= 2


def test_monitor_writes_the_history_and_counts_starts(tmp_path: Path) -> None:
    for _ in range(2):
        run = Recorded(tmp_path)
        with closing(run.monitor):
            record = run.batch(("ada", 30))
    folder = tmp_path / "slackwater" / "history"
    assert read_history(folder) == [record]
    assert (record.run, run.lives[-1].run.starts) == (2, 2)


def test_metrics_file_has_a_line_a_batch(run: Recorded, tmp_path: Path) -> None:
    with closing(MetricsFile(path=tmp_path / "metrics.jsonl")) as file:
        run.monitor.on_record = file.note
        records = [run.batch(("ada", 30)), run.batch(("bob", 20))]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line.pop("pipeline"), line.pop("starts")) for line in lines] == [("shop", 1)] * 2
    assert [BatchRecord.from_json(line) for line in lines] == records


def test_metrics_file_in_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(sw.RunError, match="existing folder") as raised:
        MetricsFile(path=tmp_path / "none" / "metrics.jsonl")
    assert raised.value.code == "METRICS_FILE"


def test_times_of_spark_are_read_from_what_java_shows() -> None:
    assert parsed_times_s("{addBatch=1200, walCommit=3}") == {"addBatch": 1.2, "walCommit": 0.003}
    assert parsed_times_s("{}") == {}


def test_oldest_row_is_exact_and_is_of_the_batch_alone(run: Recorded) -> None:
    oldest = [run.batch(*rows).streams["orders"].oldest_ms for rows in ([("ada", 900), ("bob", 3)], [("ada", 2)], [])]
    assert oldest == [NOW - 900_000, NOW - 2_000, None]
