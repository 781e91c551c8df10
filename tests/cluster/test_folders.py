"""Folders that executors on other machines do not see are refused before the first batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.spark.folders import check_folders


class _Cluster:
    """A Spark context whose second executor does not see some folders."""

    master = "spark://elsewhere:7077"
    defaultParallelism = 2  # noqa: N815  Spark's name

    def __init__(self, hidden: str = "") -> None:
        self.hidden = hidden
        self.slots: list[int] = []

    def parallelize(self, slots: Iterable[int], count: int) -> _Cluster:
        self.slots = list(slots)
        assert count == len(self.slots) > self.defaultParallelism
        return self

    def map(self, function: Callable[[int], bool]) -> _Cluster:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        [path] = [cell for cell in cells if isinstance(cell, str)]
        self.answers = [function(slot) and not (slot % 2 and path == self.hidden) for slot in self.slots]
        return self

    def collect(self) -> list[bool]:
        return self.answers


def checked(tmp_path: Path, context: Any) -> None:  # noqa: ANN401
    events = sw.stream("events", sw.sources.log(tmp_path / "log")).decode(sw.formats.json("id long"))
    pipeline = sw.Pipeline("p", events.to(sw.sinks.memory()), events.dead_letters.drop())
    check_folders(pipeline.plan(), tmp_path / "checkpoint", context)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "checkpoint").mkdir()


def test_rule_17_folder_that_executors_cannot_see_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"LOG_FOLDER_UNSHARED.*shared file system"):
        checked(tmp_path, _Cluster(str(tmp_path / "log")))


def test_checkpoint_that_executors_cannot_see_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"CHECKPOINT_UNSHARED.*shared file system"):
        checked(tmp_path, _Cluster(str(tmp_path / "checkpoint")))


def test_folders_that_all_executors_see_are_accepted(tmp_path: Path) -> None:
    checked(tmp_path, _Cluster())


def test_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").rmdir()
    with pytest.raises(RunError, match="LOG_FOLDER_MISSING"):
        checked(tmp_path, _Cluster())
