"""The files sink: folders that appear whole, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.sink import Mark, SinkBatch, Slot
from slackwater.testing import SinkHarness
from tests.sealing import content_of

SCHEMA = pl.Schema({"id": pl.Int64()})


def job(folder: Path, *, format: Literal["parquet", "json"] = "parquet", **run: Any) -> SinkHarness:  # noqa: A002, ANN401
    return SinkHarness(sink=sw.sinks.files(folder, format=format), schema=SCHEMA, **run)


def rows(*ids: int) -> pl.DataFrame:
    return pl.DataFrame({"id": ids}, schema=SCHEMA)


def batch(number: int, *frames: pl.DataFrame) -> SinkBatch:
    count = sum(frame.height for frame in frames)
    return SinkBatch(batch=number, schema=SCHEMA, rows=count, frames=lambda: iter(frames))


def ids(folder: Path) -> list[int]:
    parts = sorted(folder.glob("batch-*/part-*"))
    read = [pl.read_parquet(part) if part.suffix == ".parquet" else pl.read_ndjson(part) for part in parts]
    return [number for frame in read for number in frame["id"]]


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_batch_that_comes_again_changes_nothing(tmp_path: Path, format: Literal["parquet", "json"]) -> None:  # noqa: A002
    run = job(tmp_path, format=format)
    run.deliver(rows(1), rows(2, 3))
    run.deliver(rows(4))
    run.restart().deliver(rows(4), batch=1)
    assert ids(tmp_path) == [1, 2, 3, 4]


def written_in_parts(folder: Path, work: Callable[[Callable[[int, SinkBatch], None]], None]) -> None:
    sink = sw.sinks.files(folder)
    slot = Slot(pipeline="p", output="results", schema=SCHEMA)
    sink.prepare(slot)
    large = batch(0, rows(1, 2))
    large.in_parallel = work
    sink.open(slot).write(large, Mark(incarnation="first", batch=0, token="t"))  # noqa: S106  not a secret


def test_attempt_that_was_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted() -> Iterator[pl.DataFrame]:
        yield rows(1)
        raise KeyboardInterrupt

    def half_written(write: Callable[[int, SinkBatch], None]) -> None:
        write(0, batch(0, rows(1)))
        write(1, SinkBatch(batch=0, schema=SCHEMA, rows=1, frames=interrupted))

    with pytest.raises(KeyboardInterrupt):
        written_in_parts(tmp_path, half_written)
    assert ids(tmp_path) == [], "nothing is visible before all of it is"
    with job(tmp_path, pipeline="p") as again:
        again.deliver(rows(1, 2))
    assert ids(tmp_path) == [1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_slackwater.json", "batch-000000000000"]


def test_task_that_is_tried_again_replaces_its_part(tmp_path: Path) -> None:
    def retried(write: Callable[[int, SinkBatch], None]) -> None:
        for _ in range(2):
            write(0, batch(0, rows(1)))
        write(1, batch(0, rows(2)))
        write(2, batch(0))

    written_in_parts(tmp_path, retried)
    assert ids(tmp_path) == [1, 2]


def test_mark_says_whose_batch_it_is_and_how_many_rows(tmp_path: Path) -> None:
    job(tmp_path).deliver(rows(1, 2, 3), batch=7)
    mark = content_of(tmp_path / "batch-000000000007" / "_mark.json")
    assert mark == {"form": 1, "incarnation": "first", "batch": 7, "token": "token-7", "rows": 3}


def test_rule_19_folder_of_another_run_is_an_error_and_never_a_skip(tmp_path: Path) -> None:
    job(tmp_path).deliver(rows(1))
    with pytest.raises(
        RunError, match=r"SINK_OF_ANOTHER_RUN.*files .*start from the checkpoint that wrote them"
    ) as raised:
        job(tmp_path, incarnation="second").deliver(rows(2))
    assert "--take-over" not in str(raised.value), "which would be refused next"
    assert ids(tmp_path) == [1]


def test_batch_of_another_run_is_not_overwritten_by_one_that_takes_over(tmp_path: Path) -> None:
    job(tmp_path).deliver(rows(1))
    taking_over = SinkHarness(sink=sw.sinks.files(tmp_path), schema=SCHEMA, incarnation="second", take_over=True)
    with pytest.raises(RunError, match=r"FILES_BATCH_TAKEN.*choose another folder, or move this one away"):
        taking_over.deliver(rows(2))
    taking_over.deliver(rows(3), batch=1)
    assert ids(tmp_path) == [1, 3]


def test_folder_of_another_output_is_refused(tmp_path: Path) -> None:
    job(tmp_path).deliver(rows(1))
    with pytest.raises(RunError, match=r"FILES_FOREIGN.*output `results` of pipeline `test`.*output `late`"):
        job(tmp_path, output="late").deliver(rows(1))


def test_folder_with_batches_of_nobody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "batch-000000000000").mkdir()
    with pytest.raises(RunError, match="FILES_UNMARKED"):
        job(tmp_path).start()


def test_place_that_is_a_file_or_below_one_is_reported_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "all.py"
    file.write_text("")
    for place in (file, file / "out"):
        said = rf"FILES_PLACE.*`{place}` cannot be used: `{file}` is a file, not a folder; choose"
        with pytest.raises(RunError, match=said):
            job(place).start()
    assert file.read_text() == ""


def test_folder_that_cannot_be_made_is_reported_at_the_start() -> None:
    with pytest.raises(RunError, match=r"FILES_PLACE.*`/proc/x` cannot be used: .*No such file or directory"):
        job(Path("/proc/x")).start()


def test_changelog_is_yes_or_no(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"SINK_OPTION.*`changelog` of the files sink must be True or False"):
        sw.sinks.files(tmp_path, changelog="no")  # type: ignore[arg-type]


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="FILES_FORMAT"):
        sw.sinks.files(tmp_path, format="csv")  # type: ignore[arg-type]


def test_path_that_is_no_folder_is_refused() -> None:
    with pytest.raises(DefinitionError, match="FOLDER_REMOTE"):
        sw.sinks.files("s3://bucket/results")
