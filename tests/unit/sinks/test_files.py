"""The files sink by itself: each batch once, whatever happened in the attempt before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

import slackwater as sw
from slackwater.errors import DefinitionError, RunError
from slackwater.sinks.base import SinkBatch, SinkWriter

SCHEMA = pl.Schema({"id": pl.Int64()})


def opened(folder: Path, *, incarnation: str = "first", format: Literal["parquet", "json"] = "parquet") -> SinkWriter:  # noqa: A002
    sink = sw.sinks.files(folder, format=format)
    return sink.open(pipeline="p", output="results", schema=SCHEMA, incarnation=incarnation)


def batch(number: int, ids: list[int], **options: Any) -> SinkBatch:  # noqa: ANN401  a SinkBatch's own fields
    frames = [pl.DataFrame({"id": part}, schema=SCHEMA) for part in (ids[:1], ids[1:])]
    return SinkBatch(
        incarnation="first", batch=number, schema=SCHEMA, rows=len(ids), frames=lambda: iter(frames), **options
    )


def ids(folder: Path) -> list[int]:
    parts = sorted(folder.glob("batch-*/part-*"))
    read = [pl.read_parquet(part) if part.suffix == ".parquet" else pl.read_ndjson(part) for part in parts]
    return [number for frame in read for number in frame["id"]]


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_batch_that_comes_again_changes_nothing(tmp_path: Path, format: Literal["parquet", "json"]) -> None:  # noqa: A002
    for _ in range(2):
        writer = opened(tmp_path, format=format)
        writer.write(batch(0, [1, 2, 3]))
        writer.write(batch(1, [4]))
    assert ids(tmp_path) == [1, 2, 3, 4]


def test_attempt_that_was_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    writer = opened(tmp_path)

    def interrupted() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"id": [1]}, schema=SCHEMA)
        raise KeyboardInterrupt

    def half_written(write: Callable[[int, Iterator[pl.DataFrame]], None]) -> None:
        write(0, iter([pl.DataFrame({"id": [1]}, schema=SCHEMA)]))
        write(1, interrupted())

    with pytest.raises(KeyboardInterrupt):
        writer.write(batch(0, [1, 2], in_parallel=half_written))
    assert ids(tmp_path) == [], "nothing is visible before all of it is"
    writer.write(batch(0, [1, 2]))
    assert ids(tmp_path) == [1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_slackwater.json", "batch-000000000000"]


def test_task_that_is_tried_again_replaces_its_part(tmp_path: Path) -> None:
    def retried(write: Callable[[int, Iterator[pl.DataFrame]], None]) -> None:
        for _ in range(2):
            write(0, iter([pl.DataFrame({"id": [1]}, schema=SCHEMA)]))
        write(1, iter([pl.DataFrame({"id": [2]}, schema=SCHEMA)]))
        write(2, iter([]))

    opened(tmp_path).write(batch(0, [1, 2], in_parallel=retried))
    assert ids(tmp_path) == [1, 2]


def test_mark_says_whose_batch_it_is_and_how_many_rows(tmp_path: Path) -> None:
    opened(tmp_path).write(batch(7, [1, 2, 3]))
    mark = json.loads((tmp_path / "batch-000000000007" / "_mark.json").read_text())
    assert mark == {"incarnation": "first", "batch": 7, "rows": 3}


def test_batch_without_rows_leaves_no_folder(tmp_path: Path) -> None:
    opened(tmp_path).write(batch(0, []))
    assert [path.name for path in tmp_path.iterdir()] == ["_slackwater.json"]


def test_rule_19_folder_of_another_incarnation_is_an_error_and_never_a_skip(tmp_path: Path) -> None:
    opened(tmp_path).write(batch(0, [1]))
    with pytest.raises(RunError, match=r"FILES_FOREIGN.*another folder, delete this one, or start from the checkpoint"):
        opened(tmp_path, incarnation="second")


def test_folder_with_batches_of_nobody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "batch-000000000000").mkdir()
    with pytest.raises(RunError, match="FILES_UNMARKED"):
        opened(tmp_path)


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="FILES_FORMAT"):
        sw.sinks.files(tmp_path, format="csv")  # type: ignore[arg-type]


def test_path_that_is_no_folder_is_refused() -> None:
    with pytest.raises(DefinitionError, match="FOLDER_REMOTE"):
        sw.sinks.files("s3://bucket/results")
