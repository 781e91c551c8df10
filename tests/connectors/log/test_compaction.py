"""The record of a log does not grow with time, and each file is read once whatever it forgets."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.connectors.log import file_record, file_snapshot
from slackwater.connectors.log.file_record import FileRecord
from tests.engine.log_jobs import TIME_S, Job, write


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a record forget after a few files and batches."""
    monkeypatch.setattr(file_record, "FEW", 4)
    monkeypatch.setattr(file_record, "RETAIN", 3)
    monkeypatch.setattr(file_snapshot, "GONE", 5)


def read_one(job: Job, home: Path, name: str, time_s: int) -> Path:
    """Run a batch with one more file."""
    path = write(home, name, time_s=time_s)
    job.intake.publish()
    assert job.batch() == [path.name]
    return path


def record_bytes(job: Job) -> int:
    """Return the size of a job's record."""
    folder = job.home / "slackwater" / "log" / "0"
    return sum(path.stat().st_size for path in folder.glob("files.*"))


@pytest.mark.usefixtures("small")
def test_record_of_files_that_are_deleted_stays_flat(tmp_path: Path) -> None:
    job, sizes = Job(tmp_path), list[int]()
    for number in range(120):
        read_one(job, tmp_path, f"0/{number}", TIME_S + number).unlink()
        sizes.append(record_bytes(job))
    assert max(sizes[60:]) <= max(sizes[20:60]) + 32, "a few digits"
    assert len(job.intake._files) < 20


@pytest.mark.usefixtures("small")
def test_file_that_comes_back_long_after_it_was_forgotten_is_reported_and_not_read(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for number in range(40):
        read_one(job, tmp_path, f"0/{number}", TIME_S + number).unlink()
    back = write(tmp_path, "0/3", time_s=TIME_S + 3)
    for again in (job, Job(tmp_path)):
        again.intake.publish()
        assert again.batch() == []
        assert again.intake.unread()[0].doubtful == [str(back)]
    with pytest.warns(UserWarning, match=r"LOG_STRAYS.*0/3.*`touch` it"):
        job.intake.report()
    os.utime(back, (TIME_S + 99, TIME_S + 99))
    job = Job(tmp_path)
    job.intake.publish()
    assert job.batch() == ["3"]


@pytest.mark.usefixtures("small")
def test_numbers_of_a_partition_rise_over_forgotten_files(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for number in range(40):
        read_one(job, tmp_path, f"0/{number}", TIME_S + number).unlink()
    again = Job(tmp_path)
    write(tmp_path, "0/last", time_s=TIME_S + 40)
    again.intake.publish()
    [listed] = again.intake._by_listing[40]
    assert listed.number == 40


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("point", ["before the snapshot", "before the tail is removed"])
def test_crash_amid_a_compaction_leaves_the_record_correct(tmp_path: Path, point: str) -> None:
    job = Job(tmp_path)
    for number in range(3):
        read_one(job, tmp_path, f"0/{number}", TIME_S + number)
    write(tmp_path, "0/3", time_s=TIME_S + 3)
    name = "replace" if point == "before the snapshot" else "unlink"
    whole = getattr(Path, name)

    def crash(path: Path, *args: object, **options: object) -> object:
        if "files.arrow" in path.name or (path.name == "files.jsonl" and name == "unlink"):
            raise KeyboardInterrupt
        return whole(path, *args, **options)

    with patch.object(Path, name, crash), pytest.raises(KeyboardInterrupt):
        job.intake.publish()
    again = Job(tmp_path)
    again.intake.publish()
    assert again.batch() == ["3"]
    assert Job(tmp_path).left == []


MOVES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["appear", "cycle", "cycle"]), st.integers(0, 1), st.integers(-5, 5)),
        st.tuples(st.sampled_from(["vanish", "back"]), st.integers(0, 30), st.just(0)),
        st.tuples(st.sampled_from(["batch", "begin", "restart", "compact", "stale"]), st.just(0), st.just(0)),
    ),
    min_size=10,
    max_size=30,
)


class World:
    """A log and its job, and how often each file was read."""

    def __init__(self, home: Path) -> None:
        self.home, self.job, self.made, self.read = home, Job(home), dict[str, int](), Counter[str]()
        self.is_amid = False
        # An empty folder is not compacted: it may be one that cannot be seen.
        self.go("appear", 0, 0)

    def go(self, move: str, number: int, shift: int) -> None:
        """Make one move."""
        names = sorted(name for name in self.read if not self.is_amid)
        name = names[number % len(names)] if names else ""
        path = self.home / "log" / "0" / name
        if move == "appear":
            name = f"{number}-{len(self.made)}"
            self.made[name] = TIME_S + len(self.made) + shift
            write(self.home, f"0/{name}", time_s=self.made[name])
        elif move == "cycle" and not self.is_amid:
            self.cycle(number, shift)
        elif move == "vanish" and name:
            path.unlink(missing_ok=True)
        elif move == "back" and name:
            write(self.home, f"0/{name}", time_s=self.made[name])
        elif move == "begin" and not self.is_amid:
            self.job.intake.publish()
            self.job.begin()
            self.is_amid = True
        elif move == "batch":
            self.batch()
        elif move == "restart":
            self.job = Job(self.home)
        elif move in ("compact", "stale"):
            self.compact(is_stale=move == "stale")

    def cycle(self, number: int, shift: int) -> None:
        """Read three files, each deleted at once."""
        for _ in range(3):
            self.go("appear", number, shift)
            made = [*self.made][-1]
            self.batch()
            if made in self.read:
                (self.home / "log" / "0" / made).unlink()

    def compact(self, *, is_stale: bool) -> None:
        """Compact now; if `is_stale`, crash before the tail is removed."""
        tail = self.job.intake._record.path
        before = tail.read_bytes() if tail.exists() else None
        self.job.intake._compact({str(path) for path in (self.home / "log").glob("*/*")})
        if is_stale and before is not None:
            tail.write_bytes(before)
            self.job = Job(self.home)

    def batch(self) -> None:
        """Run a batch, or again the one that was begun."""
        if not self.is_amid:
            self.job.intake.publish()
            self.job.begin()
        number = len(list((self.job.home / "offsets").iterdir())) - 1
        self.job.intake.take(number)
        self.read.update(self.job.taken(number))
        (self.job.home / "commits" / str(number)).touch()
        self.is_amid = False


@settings(max_examples=15, deadline=None)
@given(MOVES)
def test_each_file_is_read_once_or_reported(moves: list[tuple[str, int, int]]) -> None:
    with (
        tempfile.TemporaryDirectory() as home,
        patch.object(file_record, "FEW", 3),
        patch.object(file_record, "RETAIN", 1),
        patch.object(file_snapshot, "GONE", 1),
    ):
        world = World(Path(home))
        for move in moves:
            world.go(*move)
        world.batch()
        world.batch()
        assert max(world.read.values(), default=1) == 1
        unread, _ = world.job.intake.unread()
        doubtful = {Path(path).name for path in unread.doubtful}
        assert {*world.made} == {*world.read} | doubtful
        assert not unread.files


def test_snapshot_names_every_file_of_batches_that_can_be_replayed(tmp_path: Path) -> None:
    job = Job(tmp_path)
    with patch.object(file_record, "RETAIN", 4), patch.object(file_snapshot, "GONE", 0):
        for number in range(10):
            read_one(job, tmp_path, f"0/{number}", TIME_S + number).unlink()
        write(tmp_path, "0/here", time_s=TIME_S + 10)
        job.intake.publish()
        job.intake._compact({str(tmp_path / "log/0/here")})
        record = FileRecord(job.checkpoint.files, 0)
        record.read()
        names = [Path(file.path).name for file in record.replayable()]
    assert names == ["6", "7", "8", "9", "here"], "the last four batches, and what waits"
