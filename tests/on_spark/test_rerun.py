"""A batch that is run again: delivered, its next clock written, but never committed.

file 0   a@10 s  a@20 s                            watermark then 20 s
file 1   a@30 s  a@70 s  one far ahead of the clock               70 s    run twice
file 2   a@75 s  a@5 s (late)                                     75 s
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.eventtime.clock import Clock
from slackwater.spark.job import Job
from slackwater.spark.worker import CLOCK_PROPERTY
from tests.on_spark.jobs import CrashError, Kept, crash_after, record, run, stream, write_log

pytestmark = pytest.mark.spark


def windowed(log: Path) -> Kept:
    events = stream(log, max_ahead="1s")
    return Kept(
        events=events,
        results=events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count(), ids=sw.collect_list("id")),
    )


@dataclass(kw_only=True)
class Rerun:
    """An undisturbed run and one whose batch 1 was run twice."""

    undisturbed: Kept
    again: Kept
    dead_before: pl.DataFrame
    last: Job
    handed_over: list[tuple[int, str]]


@pytest.fixture(scope="module")
def rerun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rerun:
    folder = tmp_path_factory.mktemp("rerun")
    ahead = int(time.time() * 1000) + 3_600_000
    write_log(
        folder / "log",
        [
            [record(0, 10_000), record(1, 20_000)],
            [record(2, 30_000), record(3, 70_000), record(4, ahead)],
            [record(5, 75_000), record(6, 5_000)],
        ],
    )
    undisturbed, again = windowed(folder / "log"), windowed(folder / "log")
    seen: list[tuple[int, str]] = []
    context = spark.sparkContext
    run(
        spark,
        undisturbed.pipeline,
        folder / "undisturbed",
        on_batch=lambda report: seen.append((report.batch, str(context.getLocalProperty(CLOCK_PROPERTY)))),
    )
    with pytest.raises(CrashError):
        run(spark, again.pipeline, folder / "again", on_batch=crash_after(1))
    dead_before = again.dead.rows()
    assert (folder / "again" / "slackwater" / "clock" / "2").exists()
    assert not (folder / "again" / "commits" / "1").exists()
    last = run(spark, again.pipeline, folder / "again")
    return Rerun(undisturbed=undisturbed, again=again, dead_before=dead_before, last=last, handed_over=seen)


def test_rule_01_batch_run_again_has_the_same_processing_time(rerun: Rerun) -> None:
    assert rerun.dead_before["reason"].to_list() == ["ahead_of_clock"]
    assert_frame_equal(rerun.again.dead.rows(), rerun.dead_before)


def test_rule_02_batch_run_again_gets_its_own_clock(rerun: Rerun) -> None:
    """Under the clock that was written already, the row at 30 s would be late."""
    assert rerun.last.reports[0].clock.batch == 1
    assert_frame_equal(rerun.again.late.rows(), rerun.undisturbed.late.rows())
    assert rerun.again.late.rows()["id"].to_list() == [6]


def test_rule_03_every_batch_is_handed_its_own_clock_with_its_processing_time(rerun: Rerun) -> None:
    clocks = {batch: Clock.from_property(text) for batch, text in rerun.handed_over}
    assert {batch: clock.batch for batch, clock in clocks.items()} == {batch: batch for batch in range(len(clocks))}
    times = [clock.now for _, clock in sorted(clocks.items())]
    assert times == sorted(times)
    assert abs(times[-1] / 1000 - time.time()) < 600


def test_rule_03_nothing_is_left_in_the_session(rerun: Rerun, spark: SparkSession) -> None:
    assert rerun.handed_over
    assert spark.sparkContext.getLocalProperty(CLOCK_PROPERTY) is None


def test_rule_14_state_of_a_batch_that_every_sink_has_already_is_not_missing(rerun: Rerun) -> None:
    shown = rerun.again.shown.rows()
    assert shown.sort("window_start")["ids"].list.sort().to_list() == [[0, 1, 2], [3, 5]]
    assert_frame_equal(shown, rerun.undisturbed.shown.rows(), check_row_order=False)


def test_rule_18_bounded_run_ends_with_the_final_watermark(rerun: Rerun) -> None:
    final = rerun.last.reports[-1]
    assert final.clock.is_final
    assert final.rows == 0
    assert {name: held["pieces"] for name, held in final.stats.state.items()} == {"events.window": 0}
