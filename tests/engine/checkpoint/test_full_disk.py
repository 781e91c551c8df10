"""A full disk: one sentence with the file and what to do, nothing half written, and a lock that is free again."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

import slackwater as sw
from slackwater.base import durable
from slackwater.base.errors import RunError
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.engine.checkpoint.lock import check_free, held
from slackwater.spark.failures import reason_of
from slackwater.testing import SinkHarness
from tests.engine.log_jobs import Job, write
from tests.engine.pipelines import built, events

SCHEMA = pl.Schema({"id": pl.Int64()})
NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Disk:
    """A small disk that can be filled to its last byte."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no space while the context is open."""
        filler = self.path / "filler"
        with filler.open("wb", buffering=0) as out, suppress(OSError):
            while True:
                out.write(bytes(1 << 12))
        try:
            yield
        finally:
            filler.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Give a small disk, for which a test needs the right to mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield Disk(path)
    subprocess.run(["umount", str(path)], check=True)


def counted() -> sw.Pipeline:
    return built(events().key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count()))


def test_full_disk_is_one_sentence_with_the_file_and_leaves_it_as_it_was(disk: Disk) -> None:
    checkpoint = open_checkpoint(disk.path / "job", counted().plan(), partitions=1)
    before = checkpoint.clock(0)
    path = checkpoint.home / "clock" / "0"
    words = rf"^\[DISK_FULL\].*`{path}` could not be written: No space left on device; free space there and restart"
    with disk.full(), pytest.raises(RunError, match=words):
        checkpoint.write_clock(replace(before, fingerprint="x" * 10_000))
    assert checkpoint.clock(0) == before
    assert [entry.name for entry in path.parent.iterdir()] == ["0"]


def test_checkpoint_cannot_be_created_on_a_full_disk(disk: Disk) -> None:
    with disk.full(), pytest.raises(RunError, match=rf"DISK_FULL.*`{disk.path}/job"):
        open_checkpoint(disk.path / "job", counted().plan(), partitions=1)
    open_checkpoint(disk.path / "job", counted().plan(), partitions=1)


def test_lock_is_not_taken_on_a_full_disk(disk: Disk) -> None:
    with disk.full(), pytest.raises(RunError, match="DISK_FULL"), held(disk.path / "job"):
        pytest.fail("there is no space for a lock")
    check_free(disk.path / "job")


def test_run_that_a_full_disk_ended_can_be_started_again_by_the_same_process(disk: Disk) -> None:
    with ExitStack() as filled, held(disk.path / "job"):
        filled.enter_context(disk.full())
    check_free(disk.path / "job")
    with held(disk.path / "job") as again:
        assert again.epoch == 2


def test_listing_that_does_not_fit_is_one_sentence_and_is_made_after_a_restart(disk: Disk) -> None:
    job = Job(disk.path)
    write(disk.path, "0/a")
    with disk.full(), pytest.raises(RunError, match=rf"DISK_FULL.*`{job.home}/slackwater/log/0/"):
        job.intake.publish()
    again = Job(disk.path)
    again.intake.publish()
    assert again.batch() == ["a"]


def test_files_sink_on_a_full_disk_is_named(disk: Disk) -> None:
    run = SinkHarness(sink=sw.sinks.files(disk.path / "out"), schema=SCHEMA)
    run.deliver(pl.DataFrame({"id": [1]}, schema=SCHEMA))
    with disk.full(), pytest.raises(RunError, match=rf"DISK_FULL.*`{disk.path}/out"):
        run.deliver(pl.DataFrame({"id": range(100_000)}, schema=SCHEMA))
    again = run.restart()
    again.deliver(pl.DataFrame({"id": [2]}, schema=SCHEMA))
    again.close()
    assert sw.sinks.read_files(disk.path / "out").collect()["id"].to_list() == [1, 2]


def test_lock_is_free_though_its_release_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk, which not every machine lets a test make."""

    def full(*_: object) -> None:
        raise NO_SPACE

    with monkeypatch.context() as patch, held(tmp_path):
        patch.setattr(durable, "_write", full)
    with held(tmp_path) as again:
        assert again.epoch == 2


JAVA = (
    "org.apache.spark.SparkException: Job aborted\nCaused by: java.io.IOException: No space left on device\n\tat java"
)


@pytest.mark.parametrize(
    "error, path",
    [
        (RuntimeError(JAVA), ""),
        (OSError(errno.ENOSPC, "No space left on device", "/data/part-00000"), "/data/part-00000"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), ""),
    ],
    ids=["in Spark", "a file", "a quota"],
)
def test_full_disk_that_anything_meets_is_the_reason_of_a_failure(tmp_path: Path, error: Exception, path: str) -> None:
    checkpoint = open_checkpoint(tmp_path, counted().plan(), partitions=1)
    with held(tmp_path) as lease:
        found = reason_of(error, lease, checkpoint, cast("Any", no_spark()))
    assert found is not None
    assert found.code == "DISK_FULL"
    assert path in found.message
    assert "\n" not in found.message


def test_worker_that_crashes_on_every_attempt_is_reported_with_the_way_out(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(tmp_path, counted().plan(), partitions=1)
    error = RuntimeError("Job aborted …: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
    with held(tmp_path) as lease:
        found = reason_of(error, lease, checkpoint, cast("Any", no_spark()))
    assert found is not None
    assert found.code == "WORKER_CRASHED"
    assert "batch 0" in found.message
    assert "--skip-rows" in found.message


def no_spark() -> object:
    """Return a session whose JVM this process has not started."""
    return SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=None)))
