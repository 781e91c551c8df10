"""The rules that only Spark can break. More of them in `test_rerun.py`."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.base.times import render_time
from slackwater.connectors.log.reports import StrayFilesWarning
from slackwater.engine.key_groups import labels, spark_hash
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.matrix.jobs import crashing
from tests.on_spark.jobs import MINUTE, WRITTEN_S, CrashError, Kept, record, rows, run, stream, write_file, write_log

pytestmark = pytest.mark.spark


def counted(log: Path) -> Kept:
    """Count and collect per minute, with no slack and no lateness."""
    events = stream(log)
    return Kept(
        events=events,
        results=events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count(), ids=sw.collect_list("id")),
    )


@pytest.mark.long
def test_rule_05_windows_in_a_row_give_what_a_batch_computation_gives(spark: SparkSession, tmp_path: Path) -> None:
    files = [
        [record(number, minute * MINUTE + number * 1_000, k) for number in range(3) for k in "ab"]
        for minute in (0, 1, 4, 7)
    ]
    write_log(tmp_path / "log", files)
    events = stream(tmp_path / "log")
    minutes = (
        events.key_by("k")
        .window(sw.tumbling("1m"), allowed_lateness="1m", accumulation="discarding", name="minutes")
        .aggregate(n=sw.count())
    )
    fives = minutes.key_by("k").window(sw.tumbling("5m"), name="fives").aggregate(total=sw.sum("n"))
    kept = Kept(events=events, results=fives, more=(minutes,))
    run(spark, kept.pipeline, tmp_path / "checkpoint")
    shown = kept.shown.rows().with_columns(pl.col("window_start").dt.epoch("ms"))
    assert rows(shown, "k", "window_start", "total") == [
        ("a", 0, 9), ("a", 5 * MINUTE, 3), ("b", 0, 9), ("b", 5 * MINUTE, 3),
    ]  # fmt: skip
    assert kept.late.rows().is_empty()


def test_rule_06_backlog_read_one_partition_after_the_other_makes_no_honest_row_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number, partition in enumerate("01"):
        files = [[record(10 * number + minute, minute * MINUTE)] for minute in range(2)]
        write_log(tmp_path / "log", files, partition=partition, first_s=100 * number)
    kept = counted(tmp_path / "log")
    run(spark, kept.pipeline, tmp_path / "checkpoint")
    assert kept.late.rows().is_empty()
    assert kept.shown.rows().sort("window_start")["ids"].list.sort().to_list() == [[0, 10], [1, 11]]


def test_rule_15_hash_of_labels_is_sparks_own(spark: SparkSession) -> None:
    numbers = [-(2**31), -1, 0, 1, 42, 2**31 - 1, *labels(64)]
    frame = spark.createDataFrame([(number,) for number in numbers], "key_group int")
    found = frame.select(F.hash("key_group")).collect()
    assert [value for (value,) in found] == [spark_hash(number) for number in numbers]
    used = (
        spark.createDataFrame([(label,) for label in labels(64)], "key_group int")
        .repartition(64, "key_group")
        .select(F.spark_partition_id())
        .distinct()
        .count()
    )
    assert used == 64


def test_rule_16_session_that_speculates_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = spark.sparkContext.getConf().set("spark.speculation", "true")
    monkeypatch.setattr(spark.sparkContext, "getConf", lambda: conf)
    (tmp_path / "log").mkdir()
    with pytest.raises(RunError, match=r"SPECULATION.*spark\.speculation=false"):
        make_job(counted(tmp_path / "log").pipeline.plan(), RunOptions(spark=spark, checkpoint=tmp_path / "checkpoint"))


def test_rule_17_old_files_are_read_whatever_they_are_called_and_strays_are_reported(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark by itself drops files older than a week, takes paths for patterns, and passes over `_` names."""
    log = tmp_path / "a log, 100%41 {ünï} [x]*"
    now_s = int(time.time())
    write_file(log, "0", "new", [record(0, 0)], written_s=now_s)
    write_file(log, "0", "eight days old", [record(1, 1)], written_s=now_s - 8 * 86_400)
    write_file(log, "part %20 ü", "per%20cent [1] {x}?*", [record(2, 2)], written_s=now_s - 1)
    stray = write_file(log, "0", "_stray", [record(3, 3)], written_s=now_s - 1)
    kept = counted(log)
    with pytest.warns(StrayFilesWarning, match=r"LOG_STRAYS.*\(name starts with `_`\).*_stray") as told:
        run(spark, kept.pipeline, tmp_path / "checkpoint")
    assert len(told) == 1, "each stray is reported once, not with every batch"
    assert str(stray) in str(told[0].message)
    assert kept.shown.rows()["ids"].list.sort().to_list() == [[0, 1, 2]]


def test_rule_17_file_that_changes_after_it_was_read_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "log", [[record(0, 0)], [record(1, MINUTE)]])
    first = tmp_path / "log" / "0" / f"{0:020d}.jsonl"

    def append_a_line(report: BatchReport) -> None:
        if report.batch == 1:
            first.write_text(first.read_text() * 2)

    kept = counted(tmp_path / "log")
    with pytest.warns(StrayFilesWarning, match=rf"LOG_STRAYS.*\(changed after it was read\).*{first.name}"):
        run(spark, kept.pipeline, tmp_path / "checkpoint", on_batch=append_a_line)
    assert sorted(kept.shown.rows()["ids"].to_list()) == [[0], [1]]


def crashed_in_its_last_batch(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Run a job over three files, a batch each, until it crashes with the last one evaluated and not delivered."""
    write_log(tmp_path / "log", [[record(0, 0)], [record(1, 2 * MINUTE)], [record(2, 4 * MINUTE)]])
    kept, checkpoint = counted(tmp_path / "log"), tmp_path / "checkpoint"
    with crashing(monkeypatch, tmp_path, "evaluated", 2), pytest.raises(CrashError):
        run(spark, kept.pipeline, checkpoint)
    return kept


def test_rule_17_batch_is_not_run_again_without_one_of_its_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark by itself passes over a file that is gone, and takes a changed one for the one it has listed."""
    kept, checkpoint = crashed_in_its_last_batch(spark, tmp_path, monkeypatch), tmp_path / "checkpoint"
    last = tmp_path / "log" / "0" / f"{2:020d}.jsonl"
    last.rename(tmp_path / "gone")
    with pytest.raises(RunError, match=rf"BATCH_INPUT_CHANGED.*{last} .*batch 2 .*is gone; restore the file"):
        run(spark, kept.pipeline, checkpoint)
    write_file(tmp_path / "log", "0", last.stem, [record(9, 4 * MINUTE)], written_s=WRITTEN_S + 500)
    with pytest.raises(
        RunError, match=rf"BATCH_INPUT_CHANGED.*{last} .*modified at {render_time((WRITTEN_S + 500) * 1_000)}"
    ):
        run(spark, kept.pipeline, checkpoint)
    (tmp_path / "gone").rename(last)
    run(spark, kept.pipeline, checkpoint)
    assert sorted(kept.shown.rows()["ids"].to_list()) == [[0], [1], [2]]


@pytest.mark.long
def test_rule_17_batch_is_run_again_from_what_is_there_if_that_is_accepted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, checkpoint = crashed_in_its_last_batch(spark, tmp_path, monkeypatch), tmp_path / "checkpoint"
    write_file(tmp_path / "log", "0", f"{2:020d}", [record(9, 4 * MINUTE)], written_s=WRITTEN_S + 500)
    run(spark, kept.pipeline, checkpoint, accept_changes=True)
    assert sorted(kept.shown.rows()["ids"].to_list()) == [[0], [1], [9]]


def test_rule_17_file_that_changes_under_the_reader_stops_the_job_in_plain_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A worker's error comes back wrapped in Spark's; users read the sentence that is in it."""
    write_log(tmp_path / "log", [[record(0, 0)]])

    def appended(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height:
            with (tmp_path / "log" / "0" / f"{0:020d}.jsonl").open("a") as file:
                file.write("{}\n")
        return frame

    events = stream(tmp_path / "log").map(appended)
    results = events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count())
    with pytest.raises(RunError, match=r"^\[LOG_FILE_CHANGED\].*must not change.*restore the file"):
        run(spark, Kept(events=events, results=results).pipeline, tmp_path / "checkpoint")


def test_rule_18_windows_fire_without_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "log", [[record(0, 0), record(1, 2 * MINUTE)]])
    kept = counted(tmp_path / "log")
    job = make_job(
        kept.pipeline.plan(),
        RunOptions(
            spark=spark,
            checkpoint=tmp_path / "checkpoint",
            partitions=2,
            trigger="0s",
            on_batch=lambda report: job.stop() if report.batch >= 1 else None,
        ),
    )
    job.run()
    assert [report.rows for report in job.reports[:2]] == [2, 0]
    assert kept.shown.rows()["ids"].to_list() == [[0]]
