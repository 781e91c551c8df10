"""Delta tables at both ends of a job: read as a stream, written exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.delta.sink import delta as delta_sink
from slackwater.connectors.delta.source.definition import delta as delta_source
from slackwater.connectors.sink import Sink
from slackwater.engine.outputs import evaluated as outputs
from slackwater.observe.metrics.report import BatchReport
from slackwater.pipeline import Pipeline
from tests.connectors.delta.tables import Lake
from tests.matrix.jobs import crashing, matrix_pipeline, write_matrix_log
from tests.on_spark.jobs import SCHEMA, CrashError, record, run, write_log

pytestmark = pytest.mark.spark

COLUMNS = "id long, k string, ts timestamp"
RESULTS = ("k", "window_start", "n", "total")


def at(minute: int) -> Any:  # noqa: ANN401
    from datetime import UTC, datetime, timedelta

    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)


def copied(lake: Lake, *sinks: Sink, **options: Any) -> Pipeline:  # noqa: ANN401
    rows = sw.stream("rows", delta_source(lake.path(), **options))
    return sw.Pipeline("copied", *(rows.to(sink) for sink in sinks), rows.dead_letters.drop(), key_groups=2)


def test_table_is_read_and_then_what_is_added_to_it(lake: Lake, tmp_path: Path) -> None:
    lake.write([(1, "a", at(0)), (2, "b", at(1))], COLUMNS)
    lake.write([(3, "a", at(2))], COLUMNS)
    kept = sw.sinks.memory()
    first = run(lake.spark, copied(lake, kept, max_files_per_batch=1), tmp_path / "checkpoint")
    assert first.is_finished
    assert sorted(kept.rows()["id"]) == [1, 2, 3]
    assert kept.rows().filter(id=3)["ts"].to_list() == [at(2)]


@pytest.mark.long
def test_versions_written_during_a_bounded_run_are_left_to_the_next(lake: Lake, tmp_path: Path) -> None:
    """During a run's one batch of rows, and during its final one, a row comes whose window is still open."""
    lake.write([(0, "a", at(0))], COLUMNS)
    shown, late, left = sw.sinks.memory(), sw.sinks.memory(), sw.sinks.memory()

    def more(report: BatchReport) -> None:
        lake.write([(1 + report.batch, "a", at(1 + report.batch))], COLUMNS)

    rows = sw.stream("rows", delta_source(lake.path())).event_time("ts")
    counted = rows.key_by("k").window(sw.tumbling("1h")).aggregate(ids=sw.collect_list("id"))
    pipeline = sw.Pipeline("first", counted.to(shown), counted.late.to(late), rows.dead_letters.drop(), key_groups=2)
    job = run(lake.spark, pipeline, tmp_path / "first", on_batch=more)
    assert [report.rows for report in job.reports] == [1, 0]
    assert shown.rows()["ids"].to_list() == [[0]]
    assert late.rows().is_empty()
    run(lake.spark, copied(lake, left, start=1), tmp_path / "next")
    assert sorted(left.rows()["id"]) == [1, 2]


@pytest.mark.long
def test_source_starts_at_a_version(lake: Lake, tmp_path: Path) -> None:
    lake.write([(1, "a", at(0))], COLUMNS)
    lake.write([(2, "a", at(1))], COLUMNS)
    kept = sw.sinks.memory()
    run(lake.spark, copied(lake, kept, start=1), tmp_path / "checkpoint")
    assert kept.rows()["id"].to_list() == [2]


@pytest.mark.long
def test_commit_that_changes_rows_stops_the_stream_with_words(lake: Lake, tmp_path: Path) -> None:
    lake.write([(1, "a", at(0)), (2, "b", at(1))], COLUMNS)
    lake.sql("UPDATE {table} SET k = 'c' WHERE id = 1")
    pipeline = copied(lake, sw.sinks.memory(), start=0)
    with pytest.raises(Exception, match="DELTA_SOURCE") as stopped:
        run(lake.spark, pipeline, tmp_path / "checkpoint")
    error = stopped.value
    [table] = pipeline.plan().sources
    said = error if isinstance(error, RunError) else table.source.explained(error)
    assert said is not None
    assert said.code == "DELTA_SOURCE_CHANGED"
    assert f"`{lake.path()}` has a commit that updated or deleted rows" in said.message
    passed = sw.sinks.memory()
    run(lake.spark, copied(lake, passed, start=0, ignore_changes=True), tmp_path / "other")
    assert sorted(passed.rows()["id"]) == [1, 2]


@pytest.mark.long
def test_changes_are_read_as_rows(lake: Lake, tmp_path: Path) -> None:
    lake.sql(f"CREATE TABLE {{table}} ({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    lake.write([(1, "a", at(0))], COLUMNS)
    lake.sql("DELETE FROM {table} WHERE id = 1")
    kept = sw.sinks.memory()
    run(lake.spark, copied(lake, kept, start=0, read_changes=True), tmp_path / "checkpoint")
    changes = kept.rows().sort("_commit_version")
    assert changes.select("id", "_change_type").rows() == [(1, "insert"), (1, "delete")]


@pytest.mark.long
def test_table_that_is_not_as_it_was_declared_is_refused(lake: Lake, tmp_path: Path) -> None:
    lake.write([(1, "a", at(0))], COLUMNS)
    pipeline = copied(lake, sw.sinks.memory(), schema="id string, more long")
    with pytest.raises(RunError, match=r"DELTA_SOURCE_COLUMNS.*`more` is not a column, `id` is Int64 and not String"):
        run(lake.spark, pipeline, tmp_path / "checkpoint")


@pytest.mark.long
@pytest.mark.parametrize("parallel_bytes", [1 << 40, -1], ids=["small", "large"])
def test_job_that_crashes_at_every_step_leaves_what_an_undisturbed_one_does(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel_bytes: int
) -> None:
    monkeypatch.setattr(outputs, "PARALLEL_BYTES", parallel_bytes)
    write_matrix_log(tmp_path / "log", 5)
    whole, kept = Lake(spark=lake.spark, folder=tmp_path / "whole"), sw.sinks.memory()

    def pipeline(place: Lake, *more: Sink) -> Pipeline:
        table = delta_sink(place.path(), merge_on=["k", "window_start"])
        return matrix_pipeline(tmp_path / "log", table, *more)

    run(lake.spark, pipeline(whole, kept), tmp_path / "checkpoint-whole")
    current = kept.rows().unique(["k", "window_start"], keep="last", maintain_order=True).select(RESULTS)
    assert whole.rows(*RESULTS) == sorted(
        current.with_columns(window_start=current["window_start"].dt.replace_time_zone(None)).rows()
    )
    for batch, point in enumerate(("opened", "written", "committed", "clock"), start=2):
        with crashing(monkeypatch, tmp_path, point, batch), pytest.raises(CrashError):
            run(lake.spark, pipeline(lake), tmp_path / "checkpoint")
    run(lake.spark, pipeline(lake), tmp_path / "checkpoint")
    assert lake.rows(*RESULTS) == whole.rows(*RESULTS)


@pytest.mark.long
def test_a_table_read_to_its_end_does_not_hold_back_a_join(lake: Lake, tmp_path: Path) -> None:
    lake.write([(1, "a", at(0))], COLUMNS)
    write_log(tmp_path / "log", [[record(number, _ms(number))] for number in range(6)])
    source = sw.sources.log(tmp_path / "log", max_files_per_batch=1)
    events = sw.stream("events", source).decode(sw.formats.json(SCHEMA)).event_time("ts")
    table = sw.stream("table", delta_source(lake.path())).event_time("ts")
    pairs = events.key_by("k").join(table.key_by("k"), between=("0s", "0s"), how="left", name="pairs")
    shown, late = sw.sinks.memory(), sw.sinks.memory()
    letters = (events.dead_letters.drop(), table.dead_letters.drop())
    job = run(
        lake.spark,
        sw.Pipeline("p", pairs.to(shown), pairs.late.to(late), *letters, key_groups=2),
        tmp_path / "checkpoint",
    )
    assert (shown.rows().height, late.rows().height) == (6, 0)
    assert sum(report.rows_out.get(pairs.name, 0) for report in job.reports[:-1]) >= 3


def _ms(minute: int) -> int:
    since: float = at(minute).timestamp()
    return round(since * 1_000)
