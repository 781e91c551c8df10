"""A log that is far ahead of the one it is joined with is not read until that one has come near: `max_drift`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.observe.metrics.report import BatchReport
from slackwater.plan.streams import Stream
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.on_spark.jobs import MINUTE, SCHEMA, record, run, write_log

pytestmark = pytest.mark.spark
FILES: Final = 6


def stream(name: str, log: Path, **time: Any) -> Stream:  # noqa: ANN401  as event_time's
    source = sw.sources.log(log, max_files_per_batch=1)
    return sw.stream(name, source).decode(sw.formats.json(SCHEMA)).event_time("ts", **time)


class Logs:
    """Two logs of six files; those of `fast` are an hour apart, those of `slow` a minute, and each has six minutes."""

    def __init__(self, folder: Path) -> None:
        minutes = range(FILES)
        write_log(folder / "fast", [[record(i, i * 60 * MINUTE)] for i in minutes])
        write_log(folder / "slow", [[record(i, i * MINUTE)] for i in minutes])
        fast, slow = stream("fast", folder / "fast", max_drift="10m"), stream("slow", folder / "slow")
        pairs = fast.key_by("k").join(slow.key_by("k"), between=("0s", "0s"), how="full", name="pairs")
        self.pairs, self.late = sw.sinks.memory(), sw.sinks.memory()
        letters = (fast.dead_letters.drop(), slow.dead_letters.drop())
        self.pipeline = sw.Pipeline("aligned", pairs.to(self.pairs), pairs.late.to(self.late), *letters, key_groups=2)

    def check(self) -> None:
        """Look at the pairs: the first rows meet, and no others."""
        found = self.pairs.rows().select("id", "id_right").rows()
        assert len(found) == 2 * FILES - 1
        assert (0, 0) in found


def read_of(reports: list[BatchReport], name: str) -> list[int]:
    """Return how many rows of a stream each batch read."""
    found = (report.stats.streams.get(name) for report in reports)
    return [0 if one is None else one.rows for one in found]


def test_fast_log_waits_in_a_bounded_run(spark: SparkSession, tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    job = run(spark, logs.pipeline, tmp_path / "checkpoint")
    fast, slow = read_of(job.reports, "fast"), read_of(job.reports, "slow")
    assert slow[:FILES] == [1] * FILES
    # Its second file is an hour ahead, and its third is read once the slow one has no more.
    assert fast[:FILES] == [1, 1, 0, 0, 0, 0]
    assert sum(fast) == FILES
    assert [list(report.ahead) for report in job.reports[1:5]] == [["fast"]] * 4
    logs.check()
    assert logs.late.rows().is_empty()


@pytest.mark.long
def test_fast_log_waits_in_a_live_run(spark: SparkSession, tmp_path: Path) -> None:
    logs, jobs = Logs(tmp_path), list[Job]()
    seen: list[BatchReport] = []

    def look(report: BatchReport) -> None:
        seen.append(report)
        if sum(read_of(seen, "slow")) == FILES and len(seen) >= FILES + 3:
            jobs[0].stop()

    plan, checkpoint = logs.pipeline.plan(), tmp_path / "checkpoint"
    jobs.append(
        make_job(plan, RunOptions(spark=spark, checkpoint=checkpoint, partitions=2, trigger="0s", on_batch=look))
    )
    jobs[0].run()
    # The slow one may bring more, so the fast one still waits.
    assert sum(read_of(seen, "fast")) == 2
    assert seen[-1].ahead["fast"].of == "slow"
    run(spark, logs.pipeline, checkpoint)
    logs.check()
