"""Sinks and sources on Spark: every sink gets the same rows, on whichever way they come."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.memory.sink import MemorySink
from slackwater.engine.outputs import evaluated as outputs
from slackwater.spark.job import Job
from tests.on_spark.jobs import MINUTE, WRITTEN_S, record, run, stream, write_log

pytestmark = pytest.mark.spark


class Everywhere:
    """A pipeline whose results go to every sink there is."""

    def __init__(self, log: Path, out: Path) -> None:
        self.out = out
        self.memory: MemorySink = sw.sinks.memory()
        self.handed: dict[int, pl.DataFrame] = {}
        events = stream(log)
        self.results = events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count(), ids=sw.collect_list("id"))
        self.pipeline = sw.Pipeline(
            "everywhere",
            self.results.to(self.memory),
            self.results.to(sw.sinks.files(out / "parquet")),
            self.results.to(sw.sinks.files(out / "json", format="json")),
            self.results.to(sw.sinks.foreach_batch(self.hand)),
            self.results.to(sw.sinks.console(limit=2)),
            self.results.late.drop(),
            events.dead_letters.drop(),
            key_groups=2,
        )

    def hand(self, frame: DataFrame, batch: int) -> None:
        """Take a batch as any Spark writer would."""
        self.handed[batch] = pl.DataFrame(pl.from_arrow(frame.toArrow()))

    def read(self, name: str) -> pl.DataFrame:
        """Return what a files sink wrote."""
        parts = sorted((self.out / name).glob("batch-*/part-*"))
        return pl.concat([pl.read_parquet(part) if name == "parquet" else pl.read_ndjson(part) for part in parts])


def same_rows(found: pl.DataFrame, wanted: pl.DataFrame) -> None:
    assert_frame_equal(found.cast(wanted.schema), wanted, check_row_order=False)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sinks") / "log"
    write_log(
        folder, [[record(100 * minute + n, minute * MINUTE + n, f"user-{n}") for n in range(40)] for minute in range(2)]
    )
    return folder


@pytest.fixture(scope="module")
def inline(spark: SparkSession, log: Path, tmp_path_factory: pytest.TempPathFactory) -> Everywhere:
    folder = tmp_path_factory.mktemp("inline")
    everywhere = Everywhere(log, folder / "out")
    run(spark, everywhere.pipeline, folder / "checkpoint")
    return everywhere


def test_every_sink_gets_the_same_rows(inline: Everywhere) -> None:
    wanted = inline.memory.rows()
    assert wanted.height == 80
    same_rows(inline.read("parquet"), wanted)
    same_rows(pl.concat(list(inline.handed.values())), wanted)
    told = inline.read("json").with_columns(pl.col("window_start").str.to_datetime(time_zone="UTC"))
    same_rows(told.select("k", "window_start", "n", "ids"), wanted.select("k", "window_start", "n", "ids"))


def test_large_outputs_are_written_by_the_executors_with_the_same_rows(
    spark: SparkSession, log: Path, inline: Everywhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "INLINE_BYTES", 0)
    monkeypatch.setattr(outputs, "PARALLEL_BYTES", 0)
    everywhere = Everywhere(log, tmp_path / "out")
    run(spark, everywhere.pipeline, tmp_path / "checkpoint")
    wanted = inline.memory.rows()
    same_rows(everywhere.memory.rows(), wanted)
    same_rows(everywhere.read("parquet"), wanted)
    same_rows(pl.concat(list(everywhere.handed.values())), wanted)
    batch = next((tmp_path / "out" / "parquet").glob("batch-*"))
    assert len(list(batch.glob("part-*"))) == 2, "one part per partition of the batch"


def test_console_shows_the_first_rows_and_says_how_many_there_are(
    spark: SparkSession, log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(spark, Everywhere(log, tmp_path / "out").pipeline, tmp_path / "checkpoint")
    said = capfd.readouterr().out
    assert "events.window, batch 2: 80 rows" in said
    assert said.count("user-") == 2


def test_rule_19_new_checkpoint_does_not_take_over_an_old_folder(
    spark: SparkSession, log: Path, inline: Everywhere, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match="SINK_OF_ANOTHER_RUN"):
        run(spark, Everywhere(log, inline.out).pipeline, tmp_path / "checkpoint")


def test_bounded_run_that_has_ended_is_not_continued(spark: SparkSession, inline: Everywhere) -> None:
    with pytest.raises(RunError, match="CHECKPOINT_FINISHED"):
        run(spark, inline.pipeline, inline.out.parent / "checkpoint")


@pytest.fixture
def frames(spark: SparkSession, tmp_path: Path) -> DataFrame:
    for number in range(2):
        (tmp_path / "source").mkdir(exist_ok=True)
        rows = [{"k": "ab"[n % 2], "ts": (number * 60 + n) * 1_000, "v": n} for n in range(10)]
        pl.DataFrame(rows).write_parquet(tmp_path / "source" / f"{number}.parquet")
        os.utime(tmp_path / "source" / f"{number}.parquet", (WRITTEN_S + number, WRITTEN_S + number))
    reader = spark.readStream.schema("k string, ts long, v long").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(tmp_path / "source")).where("v <> 3")


def test_any_streaming_dataframe_is_a_source(spark: SparkSession, frames: DataFrame, tmp_path: Path) -> None:
    events = sw.stream("events", sw.sources.dataframe(frames)).event_time("ts")
    results = events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count(), total=sw.sum("v"))
    kept: Any = sw.sinks.memory()
    pipeline = sw.Pipeline("frames", results.to(kept), results.late.drop(), events.dead_letters.drop(), key_groups=2)
    job: Job = run(spark, pipeline, tmp_path / "checkpoint")
    assert sum(report.rows for report in job.reports) == 18
    found = kept.rows().sort("window_start", "k").select("k", "n", "total").rows()
    assert found == [("a", 5, 20), ("b", 4, 22), ("a", 5, 20), ("b", 4, 22)]
