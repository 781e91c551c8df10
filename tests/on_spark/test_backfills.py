"""Bounded runs over uneven partitions: what is read to its end holds nothing back."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.on_spark.jobs import MINUTE, Kept, record, run, stream, write_file, write_log

pytestmark = pytest.mark.spark
FILES: Final = 6


def test_results_come_while_a_long_partition_is_still_read(spark: SparkSession, tmp_path: Path) -> None:
    """The short partition ends in the first minute, and the record of another cannot be used."""
    log = tmp_path / "log"
    write_file(log, "short", "0", [record(100, 0)], written_s=1)
    write_file(log, "broken", "0", [{"id": 101, "k": "a"}], written_s=2)
    write_log(log, [[record(number, number * MINUTE)] for number in range(FILES)], partition="long")
    events = stream(log)
    counted = events.key_by("k").window(sw.tumbling("1m"), name="minutes").aggregate(ids=sw.collect_list("id"))
    kept = Kept(results=counted, events=events)
    job = run(spark, kept.pipeline, tmp_path / "checkpoint")
    last = job.reports[-1]
    assert job.is_finished
    assert sorted(sorted(ids) for ids in kept.shown.rows()["ids"]) == [[0, 100], [1], [2], [3], [4], [5]]
    assert kept.late.rows().is_empty()
    before_the_end = sum(report.rows_out.get(counted.name, 0) for report in job.reports if report.batch < last.batch)
    # The last file is read under the watermark of the one before it, which has not reached the end of its minute.
    assert before_the_end == FILES - 2
    assert max(report.stats.state["minutes"]["rows"] for report in job.reports) <= 3
    held = [report.next_clock.streams["events"].held_by for report in job.reports[2:-2]]
    assert held == ["long"] * len(held)
