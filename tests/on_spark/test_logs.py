"""What only Spark shows of a log: the order of files, what comes during a bounded run, names of any bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.log.reports import UnreadFilesWarning
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.conftest import ROOT
from tests.matrix.jobs import crashing
from tests.on_spark.jobs import MINUTE, SCHEMA, WRITTEN_S, CrashError, Kept, record, run, stream, write_file
from tests.on_spark.log_names import write_log as write_names

pytestmark = pytest.mark.spark


def counted(log: Path) -> Kept:
    """Count and collect per minute, with no slack and no lateness."""
    events = stream(log)
    aggregates = {"n": sw.count(), "ids": sw.collect_list("id")}
    return Kept(events=events, results=events.key_by("k").window(sw.tumbling("1m")).aggregate(**aggregates))


@pytest.mark.long
def test_files_of_the_same_time_are_read_by_name_and_what_comes_during_a_bounded_run_is_left(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days 1 to 11 of one time, a batch each; `day-10` comes after `day-9`. More files come with the first batch."""
    log, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    for day in (3, 10, 1, 9, 2, 11):
        write_file(log, "0", f"day-{day}", [record(day, day * MINUTE)], written_s=WRITTEN_S)

    def more(report: BatchReport) -> None:
        if report.batch == 0:
            write_file(log, "0", "day-12", [record(12, 12 * MINUTE)], written_s=WRITTEN_S + 1)

    kept = counted(log)
    with (
        crashing(monkeypatch, tmp_path, "evaluated", 6),
        pytest.raises(CrashError),
        pytest.warns(UnreadFilesWarning, match=r"LOG_LEFT.*1 file of .*day-12\.jsonl; a run with a new checkpoint"),
    ):
        run(spark, kept.pipeline, checkpoint, on_batch=more)
    with pytest.raises(RunError, match=r"CHECKPOINT_FINISHING.*final batch of a bounded run, batch 6; .*--bounded"):
        run(spark, kept.pipeline, checkpoint, bounded=False)
    run(spark, kept.pipeline, checkpoint)
    assert kept.shown.rows()["ids"].to_list() == [[1], [2], [3], [9], [10], [11]]
    assert kept.late.rows().is_empty()


def test_what_comes_during_a_bounded_run_is_not_read_whatever_the_source(spark: SparkSession, tmp_path: Path) -> None:
    """The final batch has three files that no batch before had, and a batch takes one."""
    write_file(tmp_path / "in", "", "0", [record(0, 0), record(1, MINUTE)], written_s=WRITTEN_S)
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    events = sw.stream("events", sw.sources.dataframe(reader.json(str(tmp_path / "in")))).event_time(
        "ts", out_of_orderness="1h"
    )

    def more(report: BatchReport) -> None:
        if report.batch == 0:
            for number in (1, 2, 3):
                write_file(tmp_path / "in", "", str(number), [record(2, 2 * MINUTE)], written_s=WRITTEN_S + number)

    kept = Kept(events=events, results=events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count()))
    job = run(spark, kept.pipeline, tmp_path / "checkpoint", on_batch=more)
    assert [report.rows for report in job.reports] == [2, 0]
    assert job.is_finished
    assert kept.shown.rows()["n"].to_list() == [1, 1]
    assert kept.late.rows().is_empty()


@pytest.mark.long
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_log_is_read_whole_whatever_the_encodings_of_its_names(tmp_path: Path, locale: str) -> None:
    home = tmp_path / "hömé"
    written = write_names(home / "lög")
    env = {name: value for name, value in os.environ.items() if not name.startswith("LC_") and name != "LANG"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.on_spark.log_names", str(home)],
        env={**env, "LC_ALL": locale},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"counted {written}, dead 0" in done.stdout, done.stderr[-3_000:]


def test_copied_checkpoint_reads_nothing_twice_and_a_moved_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A job stops after the second of four minutes. A copy of its checkpoint continues; then the checkpoint moves."""
    log, checkpoint = tmp_path / "log", tmp_path / "here"
    for minute in range(4):
        write_file(log, "0", f"{minute}", [record(minute, minute * MINUTE)], written_s=WRITTEN_S + minute)
    kept = counted(log)
    jobs: list[Job] = []

    def stop(report: BatchReport) -> None:
        if report.batch == 1:
            jobs[0].stop()

    plan = kept.pipeline.plan()
    jobs.append(
        make_job(plan, RunOptions(spark=spark, checkpoint=checkpoint, partitions=2, trigger="0s", on_batch=stop))
    )
    jobs[0].run()
    shutil.copytree(checkpoint, tmp_path / "copy")
    run(spark, kept.pipeline, tmp_path / "copy")
    assert kept.shown.rows()["ids"].to_list() == [[0], [1], [2], [3]]
    checkpoint.rename(tmp_path / "there")
    with pytest.raises(RunError, match=rf"CHECKPOINT_MOVED.*there` was created at `{checkpoint}`; move it back"):
        run(spark, kept.pipeline, tmp_path / "there")
