"""The rules about the clock, as far as they show without Spark."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark import TaskContext

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.times import MIN_MS
from slackwater.engine.checkpoint.checkpoint import Checkpoint, open_checkpoint
from slackwater.engine.next_clock import first_clock
from slackwater.eventtime.clock import Clock, PartitionTime, StreamTime
from slackwater.eventtime.watermark import PartitionRead, TimePolicy, advance
from slackwater.spark import worker
from slackwater.testing import Harness
from tests.engine.pipelines import built, events, row, send

MINUTE = 60_000


def counted() -> sw.Pipeline:
    return built(events().key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count()))


def checkpoint_at(path: Path, *, begun: int, committed: int, clocks: range) -> Checkpoint:
    """Return a checkpoint as it lies there after a crash."""
    plan = counted().plan()
    checkpoint = open_checkpoint(path, plan, partitions=2)
    for log, last in (("offsets", begun), ("commits", committed)):
        (path / log).mkdir()
        for batch in range(last + 1):
            (path / log / str(batch)).touch()
    for batch in clocks:
        checkpoint.write_clock(replace(first_clock(plan), batch=batch))
    return open_checkpoint(path, plan, partitions=2)


def test_rule_02_batch_run_again_has_its_own_clock_though_the_next_is_written(tmp_path: Path) -> None:
    checkpoint = checkpoint_at(tmp_path, begun=3, committed=2, clocks=range(5))
    assert checkpoint.next_clock().batch == 3


def test_rule_02_batch_run_again_has_the_processing_time_that_spark_logged_for_it(tmp_path: Path) -> None:
    checkpoint = checkpoint_at(tmp_path, begun=3, committed=2, clocks=range(5))
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0,"batchTimestampMs":77,"conf":{}}\n{"offset":1}')
    assert checkpoint.begun_clock(3).now == 77


def test_rule_02_missing_clock_stops_the_job(tmp_path: Path) -> None:
    checkpoint = checkpoint_at(tmp_path, begun=3, committed=2, clocks=range(5))
    (tmp_path / "slackwater" / "clock" / "3").unlink()
    with pytest.raises(RunError, match=r"CHECKPOINT_DAMAGED.*clock/3` is damaged: it is missing"):
        checkpoint.next_clock()


def test_rule_02_clock_0_is_written_before_the_first_start(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(tmp_path, counted().plan(), partitions=2)
    assert checkpoint.next_clock().batch == 0


def test_rule_02_clocks_are_kept_as_long_as_spark_keeps_its_own(tmp_path: Path) -> None:
    checkpoint_at(tmp_path, begun=-1, committed=-1, clocks=range(150))
    kept = sorted(int(path.name) for path in (tmp_path / "slackwater" / "clock").iterdir())
    assert kept == list(range(149 - 100, 150))


class _Task:
    """A Spark task's context, as far as clocks go."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = properties

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802  Spark's name
        return self.properties.get(key)


def test_rule_03_task_reads_the_clock_of_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = replace(first_clock(counted().plan()), batch=3, now_ms=77)
    task = _Task({worker.CLOCK_PROPERTY: clock.to_property(), "streaming.sql.batchId": "3"})
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    assert (worker.task_clock().batch, worker.task_clock().now) == (3, 77)


@pytest.mark.parametrize("handed", [None, 2])
def test_rule_03_task_without_the_clock_of_its_batch_fails_loudly(
    monkeypatch: pytest.MonkeyPatch, handed: int | None
) -> None:
    properties = {"streaming.sql.batchId": "3"}
    if handed is not None:
        properties[worker.CLOCK_PROPERTY] = replace(first_clock(counted().plan()), batch=handed).to_property()
    monkeypatch.setattr(TaskContext, "get", lambda: _Task(properties))
    with pytest.raises(RunError, match=r"CLOCK_NOT_HANDED_OVER.*batch 3"):
        worker.task_clock()


def test_rule_03_what_is_handed_over_stays_small_however_many_partitions_there_are() -> None:
    partitions = {f"region-{number}": PartitionTime(max_ts_ms=number) for number in range(10_000)}
    clock = Clock(batch=7, streams={"events": StreamTime(watermark_ms=5, previous_ms=4, partitions=partitions)})
    text = clock.to_property()
    assert len(text) < 200
    seen = Clock.from_property(text).streams["events"]
    assert (seen.watermark_ms, seen.previous_ms) == (5, 4)


def test_rule_03_largest_times_of_a_few_partitions_are_handed_over() -> None:
    partitions = {"a": PartitionTime(max_ts_ms=17, active_at_ms=3), "b": PartitionTime()}
    clock = Clock(batch=7, streams={"events": StreamTime(partitions=partitions)})
    seen = Clock.from_property(clock.to_property()).streams["events"]
    assert {name: part.max_ts_ms for name, part in seen.partitions.items()} == {"a": 17}


def test_rule_04_first_stage_fires_by_the_clock_before_it_adds_the_batchs_rows() -> None:
    """The window is complete when batch 2 begins; its row of that batch is a correction, not part of the pane.

    batch 1   a@10 s   a@70 s → watermark 70 s
    batch 2   a@20 s            fires [0, 60) with one row, then corrects it to two
    """
    results = events().key_by("k").window(sw.tumbling("1m"), allowed_lateness="5m").aggregate(n=sw.count())
    harness = Harness(built(results))
    send(harness, row("a", 10_000), row("a", 70_000)).run_batch()
    shown = send(harness, row("a", 20_000)).run_batch()[results.name]
    assert shown.select("pane", "n").rows() == [("on_time", 1), ("late", 2)]


def test_rule_04_chained_stage_adds_before_it_fires() -> None:
    minutes = events().key_by("k").window(sw.tumbling("1m"), name="minutes").aggregate(n=sw.count())
    hours = minutes.key_by("k").window(sw.tumbling("1h"), name="hours").aggregate(total=sw.sum("n"))
    harness = Harness(built(hours, minutes))
    send(harness, row("a", 0), row("a", MINUTE)).run_batch()
    shown = harness.advance_watermark(2 * 60 * MINUTE)
    assert shown["hours"]["total"].to_list() == [2]
    assert shown["hours.late"].is_empty()


@given(
    batches=st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30 * MINUTE)), max_size=6), min_size=1, max_size=8
    ),
    lateness=st.sampled_from(["0s", "2m", "10m"]),
)
@example(batches=[[("a", 25 * MINUTE)], [("a", 26 * MINUTE)], [("a", 20 * MINUTE)]], lateness="10m")
def test_rule_05_windows_in_a_row_give_what_a_batch_computation_gives(
    batches: list[list[tuple[str, int]]], lateness: str
) -> None:
    first = (
        events()
        .key_by("k")
        .window(sw.tumbling("1m"), allowed_lateness=lateness, accumulation="discarding", name="minutes")
    )
    minutes = first.aggregate(n=sw.count())
    second = minutes.key_by("k").window(sw.tumbling("5m"), name="fives").aggregate(total=sw.sum("n"))
    third = second.key_by("k").window(sw.tumbling("15m"), name="fifteens").aggregate(total=sw.sum("total"))
    harness = Harness(built(third, second, minutes))
    for batch in batches:
        send(harness, *[row(key, ts) for key, ts in batch]).run_batch()
    harness.finish()

    wanted: dict[tuple[str, int], int] = defaultdict(int)
    for key, ts in (event for batch in batches for event in batch):
        wanted[key, ts // (15 * MINUTE)] += 1
    for key, ts_ms in harness.output(minutes.late).select("k", "ts").iter_rows():
        wanted[key, ts_ms // (15 * MINUTE)] -= 1
    found = {
        (key, round(start.timestamp() * 1000) // (15 * MINUTE)): total
        for key, start, total in harness.output(third).select("k", "window_start", "total").iter_rows()
    }
    assert found == {place: count for place, count in wanted.items() if count}
    assert harness.output(second.late).is_empty()
    assert harness.output(third.late).is_empty()


def test_rule_05_chain_that_could_double_rows_is_refused() -> None:
    minutes = events().key_by("k").window(sw.session("1m"), allowed_lateness="5m", accumulation="retracting")
    results = minutes.aggregate(n=sw.count())
    hours = results.key_by("k").window(sw.tumbling("1h"), name="hours").aggregate(total=sw.sum("n"))
    with pytest.raises(DefinitionError, match="CHAIN_UPDATES"):
        built(hours, results)


def test_rule_05_chain_after_a_window_that_never_ends_is_refused() -> None:
    everything = events().key_by("k").window(sw.global_window(), trigger=sw.after_count(2), accumulation="discarding")
    results = everything.aggregate(n=sw.count())
    hours = results.key_by("k").window(sw.tumbling("1h"), name="hours").aggregate(total=sw.sum("n"))
    with pytest.raises(DefinitionError, match="CHAIN_GLOBAL"):
        built(hours, results)


def test_rule_06_partition_not_read_yet_holds_the_watermark() -> None:
    time = advance(
        StreamTime(),
        TimePolicy(idle_after_ms=1),
        seen={"0": PartitionRead(rows=1, max_ts_ms=500)},
        backlog=frozenset({"1"}),
        now_ms=10_000,
    )
    assert time.watermark_ms == MIN_MS


def test_rule_06_silent_partition_with_backlog_is_not_idle() -> None:
    policy = TimePolicy(idle_after_ms=1_000)
    silent = StreamTime(partitions={"1": PartitionTime(max_ts_ms=50, active_at_ms=0)})
    seen = {"0": PartitionRead(rows=1, max_ts_ms=500)}
    held = advance(silent, policy, seen=seen, backlog=frozenset({"1"}), now_ms=60_000)
    freed = advance(silent, policy, seen=seen, backlog=frozenset(), now_ms=60_000)
    assert (held.watermark_ms, freed.watermark_ms) == (50, 500)


def test_rule_06_no_partition_is_idle_in_a_bounded_run() -> None:
    silent = StreamTime(partitions={"1": PartitionTime(max_ts_ms=50, active_at_ms=0)})
    time = advance(
        silent,
        TimePolicy(idle_after_ms=1_000),
        seen={"0": PartitionRead(rows=1, max_ts_ms=500)},
        backlog=frozenset(),
        now_ms=60_000,
        may_idle=False,
    )
    assert time.watermark_ms == 50
