"""Every kind of file that a result depends on: changed, cut off, exchanged or deleted, it is right or an error."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.files.sink.batches import newest_mark
from slackwater.connectors.files.sink.lease import files_of
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.log.intake import LogIntake
from slackwater.connectors.log.source import LogSource
from slackwater.connectors.sink import Slot
from slackwater.engine.checkpoint.checkpoint import Checkpoint, existing_checkpoint, open_checkpoint, read_manifest
from slackwater.engine.enrichment import snapshots
from slackwater.engine.enrichment.answers import AnswerFiles, Span
from slackwater.engine.next_clock import first_clock
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import DictStore, read_index, write_index
from slackwater.testing import SinkHarness
from tests.engine.log_jobs import Job, write

SAMPLES = 250
STEP, PLACE, OWNER = "events.window", "state/0/7", "incarnation"
SPAN = Span(partition="0", first=0, last=9)
TABLE = pl.DataFrame({"code": ["EUR", "USD"], "rate": [1.0, 1.5]})
ANSWERS = pl.DataFrame({"__key": ["a", "b"], "name": ["ada", "bob"]})
SCHEMA = pl.Schema({"id": pl.Int64()})
SLOT = Slot(pipeline="test", output="results", schema=SCHEMA)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A file that a result depends on, and its reader."""

    path: Path
    read: Callable[[], Any]
    other: Path | None = None
    """The same file of another job."""
    sibling: Path | None = None
    """A file of this kind and job, of another batch or name."""
    is_optional: bool = False
    """Whether its absence has a meaning of its own."""


def made_checkpoint(home: Path) -> tuple[Job, str]:
    """Return a job of which batch 0 is committed, and batch 1 begun and partly delivered; and a table's version."""
    write(home, "0/a")
    job = Job(home)
    job.intake.publish()
    job.batch()
    checkpoint = job.checkpoint
    version = checkpoint.snapshots.keep("rates", TABLE)
    clock = replace(first_clock(job.plan), batch=1)
    checkpoint.write_clock(clock)
    write(home, "0/b")
    job.intake.publish()
    job.begin()
    for batch, answers in enumerate((ANSWERS.reverse(), ANSWERS)):
        checkpoint.answers.write("users", batch, SPAN, answers)
    checkpoint.begin_delivery(1, job.plan.fingerprint, {"sink": 1})
    checkpoint.begin_attempt("sink", 1)
    checkpoint.files.write_json("kafka-orders.json", {"orders": "id"})
    return job, version


def checkpoint_kinds(home: Path) -> dict[str, Kind]:
    """Return the files of a checkpoint; beside it there is one of another run of the job."""
    (home / "one").mkdir()
    (home / "two").mkdir()
    job, version = made_checkpoint(home / "one")
    other, _ = made_checkpoint(home / "two")
    checkpoint, plan = job.checkpoint, job.plan
    [answers] = (checkpoint.answers.folder / "users" / "1").iterdir()
    [before] = (checkpoint.answers.folder / "users" / "0").iterdir()
    table = checkpoint.snapshots.files.at(f"tables/rates/{version}.arrow")

    log = plan.sources[0].source
    assert isinstance(log, LogSource)

    def found() -> Checkpoint | None:
        return existing_checkpoint(checkpoint.path, plan)

    def load() -> list[Any]:
        snapshots._loaded.cache_clear()
        return checkpoint.snapshots.load("rates", version).rows()

    def ask() -> list[Any]:
        checkpoint.check_answers(1)
        return [covered.answers.rows() for covered in AnswerFiles(checkpoint.answers, "users", 1).covering(SPAN)]

    def unread() -> list[str]:
        # Without `open`, which compacts a record that has more than batches have taken.
        intake = LogIntake(log, StreamPlace(pipeline="p", stream="events", number=0, progress=checkpoint, slots=2))
        intake.check()
        return sorted(file.path for file in intake.unread()[0].files)

    def taken() -> list[str]:
        place = StreamPlace(pipeline="p", stream="events", number=0, progress=checkpoint, slots=2)
        intake = LogIntake(log, place)
        intake.check()
        intake.take(1)
        return [file.path for file in intake.unread()[0].files]

    readers: dict[str, Callable[[], Any]] = {
        "manifest.json": lambda: (read_manifest(checkpoint.path), found()),
        "clock/1": lambda: checkpoint.clock(1),
        "delivering.json": lambda: checkpoint.check_half_delivered("none"),
        "attempts.json": lambda: [checkpoint.begin_attempt("sink", 1)],
        "kafka-orders.json": lambda: checkpoint.files.read_json("kafka-orders.json", dict[str, str]),
        "log/0/files.arrow": unread,
        "log/0/files.jsonl": unread,
        str(answers.relative_to(checkpoint.home)): ask,
        str(table.relative_to(checkpoint.home)): load,
        "log/0/listings/000000000001/000000000001-0000": taken,
        "../offsets/0": found,
        "../offsets/1": found,
        "../sources/0/1": taken,
    }
    siblings = {"clock/1": checkpoint.home / "clock" / "0", str(answers.relative_to(checkpoint.home)): before}
    return {
        name: Kind(
            path=checkpoint.home / name,
            read=_pinned(read) if name == "delivering.json" else read,
            other=other.checkpoint.home / name,
            sibling=siblings.get(name),
            # Users delete it to accept topics that were recreated.
            is_optional=name == "kafka-orders.json",
        )
        for name, read in readers.items()
    }


def _pinned(read: Callable[[], Any]) -> Callable[[], Any]:
    """Return a reader of the note of a delivery: that other code is refused is its value."""

    def value() -> str:
        try:
            read()
        except RunError as refused:
            if refused.code == "BATCH_HALF_DELIVERED":
                return refused.code
            raise
        return "nothing was begun"

    return value


def sink_kinds(home: Path) -> dict[str, Kind]:
    """Return the files of a sink; beside it there is one of another output."""
    for name in ("one", "two"):
        sink = sw.sinks.files(home / name, merge_after=2)
        run = SinkHarness(sink=sink, schema=SCHEMA, output="results" if name == "one" else "others")
        for _ in range(3):
            run.deliver(pl.DataFrame({"id": [1]}, schema=SCHEMA))
        run.close()
    sink, folder = sw.sinks.files(home / "one", merge_after=2), home / "one"
    mark = "batch-000000000002/_mark.json"
    readers: dict[str, Callable[[], Any]] = {
        "_slackwater.json": lambda: sink.prepare(SLOT),
        "_manifest.json": lambda: sw.sinks.read_files(folder).collect().rows(),
        mark: lambda: newest_mark(files_of(folder, SLOT)),
    }
    merged = folder / "merged-000000000000-000000000001" / "_mark.json"
    return {
        name: Kind(
            path=folder / name,
            read=read,
            other=home / "two" / name,
            sibling=merged if name == mark else None,
            # The delivery compares it with what the clock has recorded: SINK_MARK_MISSING.
            is_optional=name == mark,
        )
        for name, read in readers.items()
    }


class _Stored(DictStore):
    """The state of a key group with its blobs as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        path = self.folder / key.replace("/", "-")
        return path.read_bytes() if path.exists() else None

    def put(self, key: str, blob: bytes) -> None:
        (self.folder / key.replace("/", "-")).write_bytes(blob)


def state_kinds(home: Path) -> dict[str, Kind]:
    """Return the blobs of a key group's state; beside it there is that of another job."""
    stores = {}
    for name, owner, value in (("one", OWNER, 1), ("two", "another", 2)):
        (home / name).mkdir()
        store = stores[name] = _Stored(home / name)
        state = StepState(step=STEP, store=store)
        for number in range(2):
            added = pl.DataFrame({"__end": [value + number], "n": [value]})
            state.append(added, lambda _: {"min_end_ms": 0, "max_end_ms": 9, "wake_ms": 9})
        write_index(store, {STEP: state.to_index()}, PLACE, owner)

    def rows() -> list[Any]:
        index = read_index(stores["one"], PLACE, OWNER)
        state = StepState.from_index(STEP, stores["one"], index.get(STEP))
        return [frame.rows() for frame in state.read(state.pieces)]

    piece, sibling = f"{STEP}-0", home / "one" / f"{STEP}-1"
    return {
        # A key group without state has no index.
        "index": Kind(path=home / "one" / "index", read=rows, other=home / "two" / "index", is_optional=True),
        piece: Kind(path=home / "one" / piece, read=rows, other=home / "two" / piece, sibling=sibling),
    }


ROOMS: dict[str, Callable[[Path], dict[str, Kind]]] = {
    "checkpoint": checkpoint_kinds,
    "sink": sink_kinds,
    "state": state_kinds,
}


@pytest.fixture(params=ROOMS)
def kinds(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Kind]:
    """Give all kinds of files of a checkpoint, of a sink, of a key group's state."""
    found = ROOMS[request.param](tmp_path)
    for kind in found.values():
        kind.read()
    return found


def accepted(kind: Kind, damages: Iterator[bytes | None]) -> int:
    """Return how many damages give another value than the whole file; none, or it is an error that names a file."""
    whole, right = kind.path.read_bytes(), kind.read()
    wrong, codes = 0, set[str]()
    for damage in damages:
        kind.path.unlink() if damage is None else kind.path.write_bytes(damage)
        try:
            wrong += kind.read() != right
        except RunError as error:
            codes.add(error.code)
        finally:
            kind.path.parent.mkdir(exist_ok=True)
            kind.path.write_bytes(whole)
    assert codes <= {"CHECKPOINT_DAMAGED", "FILES_DAMAGED", "FILES_FOREIGN", "FILES_UNMARKED", "STATE_DAMAGED"}
    assert kind.read() == right
    return wrong


def flipped(whole: bytes, every: int) -> Iterator[bytes]:
    """Yield a file with each bit changed in turn, or each `every`-th one."""
    for bit in range(0, 8 * len(whole), every):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def cut(whole: bytes) -> Iterator[bytes | None]:
    """Yield a file that ends early, that has more at its end, that is empty or all zeros."""
    for length in {0, 1, len(whole) // 2, len(whole) - 1, whole.find(b"\n") + 1}:
        yield whole[:length]
    yield whole + b"\n"
    yield bytes(len(whole))


def test_no_sampled_bit_of_any_file_can_change_unnoticed(kinds: dict[str, Kind]) -> None:
    for name, kind in kinds.items():
        whole = kind.path.read_bytes()
        assert accepted(kind, flipped(whole, max(1, 8 * len(whole) // SAMPLES) | 1)) == 0, name


@pytest.mark.long
def test_no_bit_of_any_file_can_change_unnoticed(kinds: dict[str, Kind]) -> None:
    for name, kind in kinds.items():
        assert accepted(kind, flipped(kind.path.read_bytes(), 1)) == 0, name


def test_file_that_is_cut_off_or_missing_is_found(kinds: dict[str, Kind]) -> None:
    for name, kind in kinds.items():
        assert accepted(kind, cut(kind.path.read_bytes())) == 0, name
        assert kind.is_optional or accepted(kind, iter([None])) == 0, name


def test_file_of_another_batch_or_job_is_found(kinds: dict[str, Kind]) -> None:
    for name, kind in kinds.items():
        others = [path.read_bytes() for path in (kind.other, kind.sibling) if path is not None]
        assert accepted(kind, iter(others)) == 0, name


def test_seal_shows_whose_file_it_is_and_the_content_is_readable(tmp_path: Path) -> None:
    job, _ = made_checkpoint(tmp_path)
    seal, content = (job.checkpoint.home / "clock" / "1").read_text().splitlines()
    assert json.loads(seal)["place"] == "clock/1"
    assert json.loads(seal)["of"] == job.checkpoint.incarnation
    assert json.loads(content)["batch"] == 1


def test_clock_of_another_run_says_whose_it_is(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (one, _), (two, _) = (made_checkpoint(tmp_path / name) for name in ("one", "two"))
    shutil.copy(two.checkpoint.home / "clock" / "1", one.checkpoint.home / "clock" / "1")
    theirs, mine = two.checkpoint.incarnation[:8], one.checkpoint.incarnation[:8]
    with pytest.raises(
        RunError, match=rf"clock/1` is damaged: it belongs to `{theirs}`, and this is `{mine}`; restore"
    ):
        one.checkpoint.clock(1)


def test_note_of_an_earlier_delivery_is_found_if_a_sink_has_the_batch(tmp_path: Path) -> None:
    job, _ = made_checkpoint(tmp_path)
    job.checkpoint.check_begun_delivery(1)
    with pytest.raises(RunError, match=r"delivering\.json` is damaged: it is of batch 1, and a sink has batch 2"):
        job.checkpoint.check_begun_delivery(2)


def test_offset_log_of_another_checkpoint_is_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (one, _), (two, _) = (made_checkpoint(tmp_path / name) for name in ("one", "two"))
    for entry in (two.home / "offsets").iterdir():
        (one.home / "offsets" / entry.name).write_text(
            entry.read_text().replace('batchTimestampMs":0', 'batchTimestampMs":1')
        )
    with pytest.raises(RunError, match=rf"`{one.home}/offsets/0` is damaged: batch 0 ran with other offsets; restore"):
        existing_checkpoint(one.home, one.plan)
    shutil.rmtree(one.home / "offsets")
    with pytest.raises(RunError, match=rf"`{one.home}/offsets/0` is damaged: it is missing; restore"):
        existing_checkpoint(one.home, one.plan)


def test_longer_offset_log_of_another_checkpoint_is_named(tmp_path: Path) -> None:
    job, _ = made_checkpoint(tmp_path)
    (job.home / "offsets" / "7").write_text("v1\n{}\n-\n0")
    with pytest.raises(RunError, match=rf"`{job.home}/offsets/7` is damaged: it does not follow batch 0"):
        existing_checkpoint(job.home, job.plan)


@pytest.mark.parametrize("entry", [0, 1])
def test_missing_entry_of_sparks_log_of_a_source_is_named(tmp_path: Path, entry: int) -> None:
    job, _ = made_checkpoint(tmp_path)
    path = job.home / "sources" / "0" / str(entry)
    path.unlink()
    with pytest.raises(RunError, match=rf"CHECKPOINT_DAMAGED.*`{path}` is damaged: it is missing; restore"):
        Job(tmp_path)


def test_share_that_a_power_failure_left_empty_is_written_again(tmp_path: Path) -> None:
    job, _ = made_checkpoint(tmp_path)
    [share] = (job.intake.listings / "000000000001").iterdir()
    whole = share.read_bytes()
    share.write_bytes(b"")
    with pytest.raises(RunError, match=rf"CHECKPOINT_DAMAGED.*`{share}` is damaged: it does not name the files"):
        job.intake.take(1)
    Job(tmp_path).intake.take(1)
    assert share.read_bytes() == whole


def test_checkpoint_opened_again_is_as_it_was(tmp_path: Path) -> None:
    job, _ = made_checkpoint(tmp_path)
    again = open_checkpoint(job.home, job.plan, partitions=1)
    assert again.next_clock() == job.checkpoint.next_clock()
    assert again.next_clock().incarnation == again.incarnation
