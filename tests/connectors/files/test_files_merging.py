"""Small folders of a files sink that become one: no reader sees a row twice or misses one, whatever crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.files.sink import batches
from slackwater.connectors.files.sink.lease import FolderLease, files_of
from slackwater.connectors.sink import Slot
from slackwater.testing import SinkHarness

SCHEMA = pl.Schema({"id": pl.Int64()})


class CrashError(Exception):
    """Raised where a process would have died."""


def job(folder: Path, merge_after: int | None = 3, format: Literal["parquet", "json"] = "parquet") -> SinkHarness:  # noqa: A002
    return SinkHarness(sink=sw.sinks.files(folder, merge_after=merge_after, format=format), schema=SCHEMA)


def deliver(run: SinkHarness, *numbers: int) -> None:
    for number in numbers:
        run.deliver(pl.DataFrame({"id": [number]}, schema=SCHEMA), batch=number)


def ids(folder: Path) -> list[int]:
    rows = sw.sinks.read_files(folder).collect()
    return rows["id"].to_list() if rows.width else []


def folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_small_folders_become_one_and_stay_until_the_next_merging(
    tmp_path: Path,
    format: Literal["parquet", "json"],  # noqa: A002
) -> None:
    run = job(tmp_path, format=format)
    deliver(run, 0, 1, 2)
    merged = "merged-000000000000-000000000002"
    assert folders(tmp_path) == [*(f"batch-{number:012d}" for number in range(3)), merged]
    assert ids(tmp_path) == [0, 1, 2]
    deliver(run, 3, 5, 7)
    assert merged in folders(tmp_path)
    assert "batch-000000000000" not in folders(tmp_path)
    assert ids(tmp_path) == [0, 1, 2, 3, 5, 7]
    suffix = "parquet" if format == "parquet" else "jsonl"
    assert len(list(tmp_path.glob(f"merged-*/part-*.{suffix}"))) == 2


def test_number_of_folders_does_not_grow_with_the_batches(tmp_path: Path) -> None:
    run = job(tmp_path)
    deliver(run, *range(81))
    assert batches.Manifest.read(files_of(tmp_path)).folders == ("merged4-000000000000-000000000080",)
    deliver(run, *range(81, 107))
    assert len(batches.Manifest.read(files_of(tmp_path)).folders) == 7
    assert len(folders(tmp_path)) <= 7 + 4 * 3, "with those that wait for their deletion"
    assert ids(tmp_path) == list(range(107))


def test_folders_that_become_many_are_noticed_unless_they_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MANY", 10)
    deliver(job(tmp_path / "merged"), *range(10))
    run = job(tmp_path / "plain", merge_after=None)
    deliver(run, *range(8))
    run.restart()
    deliver(run, 8)
    with pytest.warns(SinkWarning, match=r"FILES_MANY.*plain` contains 10 batch folders.*merge_after=100.*read_files"):
        deliver(run, 9)
    deliver(run, 10, 11)


def test_folder_that_is_full_is_merged_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_FULL_BYTES", 1)
    run = job(tmp_path)
    deliver(run, *range(10))
    first = ["merged-000000000000-000000000002", "merged-000000000003-000000000005", "merged-000000000006-000000000008"]
    assert batches.Manifest.read(files_of(tmp_path)).folders == (*first, "batch-000000000009")
    assert ids(tmp_path) == list(range(10))


def test_folders_that_fill_one_together_are_merged_before_there_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = job(tmp_path)
    deliver(run, 0, 1, 2)
    [part] = tmp_path.glob("merged-*/part-*")
    monkeypatch.setattr(batches, "_FULL_BYTES", part.stat().st_size + 1)
    deliver(run, 3, 4, 5)
    assert batches.Manifest.read(files_of(tmp_path)).folders == ("merged2-000000000000-000000000005",)


def test_batch_that_was_merged_is_known_when_it_comes_again(tmp_path: Path) -> None:
    run = job(tmp_path)
    deliver(run, 0, 1, 2)
    run.restart()
    deliver(run, 2, 3)
    assert ids(tmp_path) == [0, 1, 2, 3]


def test_reader_who_saw_the_manifest_before_can_still_read(tmp_path: Path) -> None:
    run = job(tmp_path)
    deliver(run, 0, 1)
    seen = sw.sinks.read_files(tmp_path)
    deliver(run, 2, 3)
    assert seen.collect()["id"].to_list() == [0, 1]


def crash(*_: Any, **__: Any) -> None:  # noqa: ANN401  whatever is called with
    raise CrashError


STEPS = {
    "rows": (pl.LazyFrame, "sink_parquet", crash),
    "rename": (batches, "flush_file", crash),
    "manifest": (batches.Manifest, "write", crash),
    "deleting": (FolderLease, "remove", crash),
}


@pytest.mark.parametrize("step", STEPS)
def test_crash_in_mid_merging_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    run = job(tmp_path)
    deliver(run, 0, 1, 2, 3, 4)
    with monkeypatch.context() as patch:
        patch.setattr(*STEPS[step])
        with pytest.raises(CrashError):
            deliver(run, 5)
    assert ids(tmp_path) == ([0, 1, 2, 3, 4, 5] if step == "deleting" else [0, 1, 2, 3, 4])
    run.restart()
    deliver(run, 5, 6, 7, 8)
    assert ids(tmp_path) == list(range(9))
    manifest = batches.Manifest.read(files_of(tmp_path))
    assert folders(tmp_path) == sorted([*manifest.folders, *manifest.retired])


def test_merging_may_begin_and_end_at_any_start(tmp_path: Path) -> None:
    run = job(tmp_path, merge_after=None)
    deliver(run, 0, 1, 2, 3)
    assert not list(tmp_path.glob("_manifest.json"))
    merging = job(tmp_path)
    merging.marked = [3]
    deliver(merging, 4)
    assert ids(tmp_path) == [0, 1, 2, 3, 4]
    assert [name for name in folders(tmp_path) if name.startswith("merged")] == ["merged-000000000000-000000000004"]
    plain = job(tmp_path, merge_after=None)
    plain.marked = [4]
    deliver(plain, 5, 6, 7)
    assert ids(tmp_path) == list(range(8)), "the manifest goes on, once there is one"


def test_mark_of_a_batch_that_the_manifest_does_not_name_yet_is_the_newest(tmp_path: Path) -> None:
    run, manifest = job(tmp_path), tmp_path / "_manifest.json"
    deliver(run, 0)
    before = manifest.read_text()
    deliver(run, 1)
    manifest.write_text(before)  # as a crash between the two leaves it
    found = run.sink.last_mark(Slot(pipeline="test", output="results", schema=SCHEMA))
    assert found is not None
    assert found.batch == 1


def test_older_batch_of_another_run_is_refused(tmp_path: Path) -> None:
    deliver(job(tmp_path), 0, 1, 2)
    other = SinkHarness(sink=sw.sinks.files(tmp_path), schema=SCHEMA, incarnation="second", take_over=True)
    with pytest.raises(RunError, match=r"FILES_BATCH_TAKEN.*already contains batch 1 or a later one"):
        deliver(other, 1)


@pytest.mark.parametrize("merge_after", [0, 1, True, "3", 2.5])
def test_number_that_makes_no_sense_is_refused(tmp_path: Path, merge_after: Any) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match="FILES_MERGE"):
        sw.sinks.files(tmp_path, merge_after=merge_after)
