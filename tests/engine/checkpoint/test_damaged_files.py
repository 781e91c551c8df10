"""Damaged files of a checkpoint and of a files sink: one sentence with the file and what to do, whatever the damage."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.kafka.source.intake import processed_offsets
from slackwater.connectors.log.file_record import FileRecord
from slackwater.connectors.log.listing import ListedFile
from slackwater.connectors.sink import DamagedMarkError, Mark
from slackwater.engine.checkpoint.checkpoint import Checkpoint, open_checkpoint
from slackwater.engine.checkpoint.damage import damage_of
from slackwater.plan.plan import Plan
from slackwater.spark.intake import Intakes
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from slackwater.testing import SinkHarness
from tests.sealing import content_of, reseal

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda whole: whole[: len(whole) // 2],
    "empty": lambda _: b"",
    "zeros": lambda whole: bytes(len(whole)),
    "garbage": lambda _: b"\xff\xfe\x00\x81garbage\x9c",
    "another shape": lambda _: b'[{"a": 1}]',
    "a number": lambda _: b"7",
    "nothing in it": lambda _: b"{}",
    "other types": lambda _: b'{"sealed": [1], "place": [null], "of": {}, "length": "x", "sha256": 7}',
}


BARE = r"out of range|unpack|object has no|keyword argument|invalid literal|not of type|NoneType|subscriptable"
"""What Python says of a damaged file by itself."""


def why(error: RunError) -> str:
    """Return what an error says is wrong with the file: a sentence about it."""
    found = re.search(r"` is damaged: ([^;\n]*); restore ", error.message)
    assert found is not None
    assert re.search(BARE, found[1]) is None
    return found[1]


def plan() -> Plan:
    events = sw.stream("events", sw.sources.log("/log")).decode(sw.formats.json("ts timestamp, k string"))
    counted = events.event_time("ts").key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count())
    ends = [counted.to(sw.sinks.memory()), counted.late.drop(), events.dead_letters.drop()]
    return sw.Pipeline("damaged", *ends).plan()


LISTED: dict[str, Any] = {
    "path": "/log/0/a",
    "partition": "0",
    "number": 0,
    "length": 1,
    "modified_ms": 1,
    "listing": 0,
}


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(path, plan(), partitions=2)


def begun(path: Path) -> Checkpoint:
    """Return a checkpoint of which batch 0 is begun, with all files there can be."""
    checkpoint = opened(path)
    checkpoint.begin_delivery(0, plan().fingerprint, {"sink": 1})
    checkpoint.begin_attempt("sink", 0)
    share = path / "slackwater/log/0/listings/000000000000/000000000000-0000"
    share.parent.mkdir(parents=True)
    share.write_text(f"{json.dumps(LISTED)}\n")
    for name, text in {
        "offsets/0": 'v1\n{"batchTimestampMs":1}\n{"logOffset":0}\n{"a": 1}\n',
        "sources/0/0": f'v1\n{{"path":"file://{share}","timestamp":1,"batchId":0}}\n',
    }.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    record = FileRecord(checkpoint.files, 0)
    record.rewrite(-1)
    record.append([ListedFile(**LISTED)])
    return checkpoint


READERS: dict[str, Callable[[Checkpoint], object]] = {
    "manifest.json": lambda checkpoint: opened(checkpoint.path),
    "clock/0": Checkpoint.next_clock,
    "delivering.json": lambda checkpoint: opened(checkpoint.path),
    "attempts.json": lambda checkpoint: checkpoint.begin_attempt("sink", 1),
    "log/0/files.arrow": lambda checkpoint: Intakes.open(plan(), checkpoint, slots=1),
    "log/0/files.jsonl": lambda checkpoint: Intakes.open(plan(), checkpoint, slots=1),
}


@pytest.mark.parametrize("file", ["manifest.json", "clock/0", "delivering.json", "attempts.json"])
def test_folder_in_the_place_of_a_file_is_one_sentence(tmp_path: Path, file: str) -> None:
    checkpoint = begun(tmp_path)
    (checkpoint.home / file).unlink()
    (checkpoint.home / file).mkdir()
    with pytest.raises(RunError, match=r"CHECKPOINT_DAMAGED.*it is a folder"):
        READERS[file](checkpoint)


@pytest.mark.parametrize("gone", ["clock", "manifest.json"])
def test_missing_part_of_a_checkpoint_is_one_sentence(tmp_path: Path, gone: str) -> None:
    checkpoint = begun(tmp_path)
    path = checkpoint.home / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(RunError, match=rf"CHECKPOINT_DAMAGED.*{gone}` is damaged: it is missing"):
        opened(tmp_path).next_clock()


@pytest.mark.parametrize("file, damage", [(file, damage) for file in READERS for damage in DAMAGES])
def test_damaged_file_of_a_checkpoint_is_one_sentence(tmp_path: Path, file: str, damage: str) -> None:
    checkpoint = begun(tmp_path)
    path = checkpoint.home / file
    whole = path.read_bytes()
    READERS[file](checkpoint)
    path.write_bytes(DAMAGES[damage](whole))
    with pytest.raises(RunError) as error:
        READERS[file](checkpoint)
    assert error.value.code == "CHECKPOINT_DAMAGED"
    words = f"`{path}` is damaged: "
    assert words in error.value.message
    assert f"restore all of `{tmp_path}` from a backup, or start with a new checkpoint" in error.value.message
    assert len(why(error.value)) < 100


@pytest.mark.parametrize("damage", ["truncated", "empty", "zeros", "garbage", "another shape", "a number"])
def test_damaged_offsets_of_a_batch_are_one_sentence(tmp_path: Path, damage: str) -> None:
    checkpoint, path = begun(tmp_path), tmp_path / "offsets" / "0"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))

    def begin() -> None:
        checkpoint.begun_clock(0)
        Intakes.open(plan(), checkpoint, slots=1)

    with pytest.raises(RunError, match=rf"CHECKPOINT_DAMAGED.*`{path}` is damaged") as caught:
        begin()
    assert len(why(caught.value)) < 100


@pytest.mark.parametrize(
    "text, reason",
    [
        ("v1\n", "it ends before the line with the batch's time"),
        ('v1\n{"batchTimestampMs":1}\n', "it ends before the line of source 1"),
        ('v1\n{"batchTimestampMs":"x"}\n-\n', '`batchTimestampMs` has "x" where a whole number belongs'),
        ("v1\n{}\n-\n", "`batchTimestampMs` is missing"),
        ('v1\n{"batchTimestampMs":1}\n{"logOffset":[0]}\n', "`logOffset` has [0] where a whole number belongs"),
        ('v1\n{"batchTimestampMs":1}\n[1]\n', "it has [1] where an object belongs"),
    ],
)
def test_damaged_offsets_say_what_is_wrong_with_them(tmp_path: Path, text: str, reason: str) -> None:
    checkpoint, path = begun(tmp_path), tmp_path / "offsets" / "0"
    path.write_text(text)

    def begin() -> None:
        checkpoint.begun_clock(0)
        Intakes.open(plan(), checkpoint, slots=1)

    with pytest.raises(RunError) as caught:
        begin()
    assert why(caught.value) == reason


@pytest.mark.parametrize("line", ["[1]", '{"orders": 3}', '{"orders": {"0": null}}', '{"orders": {"x": 1}}'])
def test_damaged_offsets_of_kafka_are_one_sentence(tmp_path: Path, line: str) -> None:
    with pytest.raises(RunError) as caught, opened(tmp_path).readable(tmp_path / "offsets" / "0"):
        processed_offsets(line)
    assert len(why(caught.value)) < 100


def test_file_with_more_in_it_than_belongs_there_is_damaged(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path)
    path = checkpoint.home / "clock" / "0"
    reseal(path, {**content_of(path), "tide": 1})
    with pytest.raises(RunError) as caught:
        checkpoint.clock(0)
    assert why(caught.value) == "`tide` does not belong there"


@pytest.mark.parametrize("damage", ["truncated", "garbage"])
def test_damaged_list_of_a_batchs_files_is_one_sentence(tmp_path: Path, damage: str) -> None:
    checkpoint, path = begun(tmp_path), tmp_path / "sources" / "0" / "0"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(RunError, match=rf"CHECKPOINT_DAMAGED.*`{path.parent}` is damaged"):
        Intakes.open(plan(), checkpoint, slots=1)


def test_clock_under_the_name_of_another_is_found(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path)
    (checkpoint.home / "clock" / "0").rename(checkpoint.home / "clock" / "7")
    with pytest.raises(RunError, match=r"CHECKPOINT_DAMAGED.*clock/7.*it was written as `clock/0`"):
        checkpoint.clock(7)


@pytest.mark.parametrize("batch", [0, 1])
def test_damaged_clock_is_found_before_spark_starts(tmp_path: Path, batch: int) -> None:
    """Batch 0 was begun and is to be run again; the clock of batch 1 has the marks of what it delivered."""
    checkpoint = begun(tmp_path)
    (checkpoint.home / "clock" / str(batch)).write_text("{")
    with pytest.raises(RunError, match=rf"CHECKPOINT_DAMAGED.*clock/{batch}` is damaged"):
        make_job(
            plan(), RunOptions(checkpoint=tmp_path), on_start=lambda: pytest.fail("all that needs no Spark was checked")
        )


SCHEMA = pl.Schema({"id": pl.Int64()})


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["_slackwater.json", "_manifest.json", "merged-000000000000-000000000001/_mark.json"])
def test_damaged_file_of_a_files_sink_is_one_sentence(tmp_path: Path, file: str, damage: str) -> None:
    run = SinkHarness(sink=sw.sinks.files(tmp_path, merge_after=2), schema=SCHEMA)
    for _ in range(2):
        run.deliver(pl.DataFrame({"id": [1]}, schema=SCHEMA))
    run.close()
    path = tmp_path / file
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(RunError) as error:
        run.restart().start(2)
    assert error.value.code == "FILES_DAMAGED"
    assert f"`{path}` is damaged: " in error.value.message
    assert f"restore `{tmp_path}` from a backup" in error.value.message
    if file == "_manifest.json":
        with pytest.raises(RunError, match="FILES_DAMAGED"):
            sw.sinks.read_files(tmp_path)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"incarnation": "a", "batch": 1},
        {"incarnation": "a", "batch": "x", "token": "t"},
        {"incarnation": 3, "batch": 1, "token": "t"},
        {"incarnation": "a", "batch": None, "token": "t"},
        ["a"],
        {"form": "x", "incarnation": "a", "batch": 1, "token": "t"},
    ],
)
def test_mark_that_a_server_gives_back_damaged_is_one_sentence(stored: object) -> None:
    with pytest.raises(DamagedMarkError, match="is not a mark"):
        Mark.from_dict(stored)  # type: ignore[arg-type]


def test_mark_of_another_form_is_refused() -> None:
    stored = Mark(incarnation="a", batch=1, token="t").as_dict()  # noqa: S106  not a password
    with pytest.raises(DamagedMarkError, match="it has form 2, and this version reads 1"):
        Mark.from_dict({**stored, "form": 2})


BY_ANOTHER = "was written by another version: it has form 2, and this version reads 1; use the version that wrote it"


def test_mark_of_another_version_is_not_called_damaged(tmp_path: Path) -> None:
    run = SinkHarness(sink=sw.sinks.files(tmp_path), schema=SCHEMA)
    run.deliver(pl.DataFrame({"id": [1]}, schema=SCHEMA))
    run.close()
    for path in tmp_path.glob("batch-*/_mark.json"):
        reseal(path, {**content_of(path), "form": 2})
    with pytest.raises(RunError, match=f"^.FILES_DAMAGED. a stored form .*_mark.json` {BY_ANOTHER}$"):
        run.restart().start(1)


def test_mark_in_a_server_of_another_version_is_not_called_damaged() -> None:
    class Writer(sw.sinks.SinkWriter):
        def mark(self) -> Mark | None:
            return Mark.from_dict({"form": 2, "incarnation": "a", "batch": 1, "token": "t"})

        def write(self, batch: sw.sinks.SinkBatch, mark: Mark | None) -> None:
            raise AssertionError(batch, mark)

    class Table(sw.sinks.Sink):
        delivery = "exactly_once"

        def open(self, slot: sw.sinks.Slot) -> sw.sinks.SinkWriter:
            return Writer()

        def __str__(self) -> str:
            return "table t"

    run = SinkHarness(sink=Table(), schema=SCHEMA)
    with pytest.raises(RunError, match=f"SINK_MARK_DAMAGED.*the mark of output `.*` in table t {BY_ANOTHER}"):
        run.deliver(pl.DataFrame({"id": [1]}, schema=SCHEMA))


def test_seal_of_another_version_is_not_called_damaged(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path)
    path = tmp_path / "slackwater" / "clock" / "0"
    path.write_bytes(path.read_bytes().replace(b'"sealed": 2', b'"sealed": 3'))
    with pytest.raises(
        RunError, match=r"clock/0` was written by another version: it has a seal of version 3, and .* 2;"
    ):
        checkpoint.clock(0)


def test_file_of_another_form_is_refused_by_name(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path)
    content = json.dumps(content_of(tmp_path / "slackwater" / "clock" / "0")).encode()
    checkpoint.files.write("clock/0", content, form=2)
    with pytest.raises(RunError, match=f"CHECKPOINT_DAMAGED.*clock/0` {BY_ANOTHER}"):
        checkpoint.clock(0)


LOADING = """An error occurred while calling o485.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.failedToReadStreamingStateFileError(Errors.scala:1)
Caused by: {cause}
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
Caused by: java.lang.InterruptedException
"""


@pytest.mark.parametrize(
    "cause, named, why",
    [
        ("java.io.EOFException", "state", "the state cannot be loaded (EOFException)"),
        (
            "org.apache.hadoop.fs.ChecksumException: Checksum error: file:{home}/state/0/0/2.changelog at 0",
            "state/0/0/2.changelog",
            "the state cannot be loaded (ChecksumException Checksum error: file:",
        ),
        (
            "java.io.FileNotFoundException: File file:{home}/state/0/0/9.changelog does not exist",
            "state/0/0/9.changelog",
            "it is missing",
        ),
    ],
)
def test_state_that_cannot_be_loaded_is_one_sentence(tmp_path: Path, cause: str, named: str, why: str) -> None:
    (tmp_path / "state" / "0" / "0").mkdir(parents=True)
    (tmp_path / "state" / "0" / "0" / "2.changelog").touch()
    found = damage_of(tmp_path, Exception(LOADING.replace("{cause}", cause).replace("{home}", str(tmp_path))))
    assert found is not None
    assert found.code == "CHECKPOINT_DAMAGED"
    assert f"`{tmp_path / named}` is damaged: {why}" in found.message
    assert "\n" not in found.message


def test_state_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    words = "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart streaming query"
    found = damage_of(tmp_path, Exception(words))
    assert f"`{tmp_path / 'state'}` is damaged: it is missing; restore" in str(found)


@pytest.mark.parametrize("damage", ["truncated", "empty", "zeros", "garbage", "another shape", "a number"])
@pytest.mark.parametrize("file", ["metadata", "offsets/1", "commits/0", "sources/0/0", "state/0/_metadata/v2/0"])
def test_log_that_spark_cannot_read_is_found_after_its_failure(tmp_path: Path, file: str, damage: str) -> None:
    for name in ("offsets/0", "offsets/1", "commits/0", "sources/0/0", "state/0/_metadata/v2/0"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('v1\n{"a": 1, "and": "so on"}\n-\n7')
    (tmp_path / "metadata").write_text('{"id": "1"}')
    (tmp_path / "sources" / "0" / "1").write_text('\0v1\n{"topic": {"0": 1}}')
    failure = Exception("[STREAM_FAILED] Query terminated with exception: Input length = 1")
    assert damage_of(tmp_path, failure) is None
    path = tmp_path / file
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert f"`{path}` is damaged" in str(damage_of(tmp_path, failure))
