"""Lines of a log's files are records, whatever the chunks; a file that changed or is damaged is an error."""

from __future__ import annotations

import gzip
import os
import pickle
from dataclasses import replace
from pathlib import Path
from unittest import mock

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.log import reading as log_reader
from slackwater.connectors.log.reading import LogFileError, read_file
from slackwater.engine.memory import MemoryEngine
from slackwater.engine.next_clock import first_clock
from tests.connectors.log.log_chunks import chunks_of


def records_of(path: Path, *, chunk_bytes: int = 1 << 20) -> list[bytes]:
    """Return all records of a file, after checking that chunks are numbered without gaps."""
    records: list[bytes] = []
    for chunk in chunks_of(path, chunk_bytes=chunk_bytes):
        assert chunk.first_line == len(records)
        assert chunk.frame.drop("__size", strict=False).schema == {"__payload": pl.Binary}
        records += chunk.frame["__payload"].to_list()
    return records


def written(folder: Path, content: bytes, name: str = "0.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content, records",
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\n\nb\n\n", [b"a", b"", b"b", b""]),
        (b"a\r\nb\r\n\r\n", [b"a", b"b", b""]),
        (b"a\rb\n", [b"a\rb"]),
        (b"\x00\xff\n\xfe", [b"\x00\xff", b"\xfe"]),
    ],
)
def test_every_line_is_a_record_and_the_last_newline_makes_none(
    tmp_path: Path, content: bytes, records: list[bytes]
) -> None:
    assert records_of(written(tmp_path, content)) == records


@given(
    content=st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"bcdefgh", b"\xff", b"long" * 9])).map(b"".join),
    chunk_bytes=st.integers(1, 40),
    most_rows=st.sampled_from([1, 3, 1 << 20]),
)
def test_records_do_not_depend_on_where_chunks_end(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, chunk_bytes: int, most_rows: int
) -> None:
    path = written(tmp_path_factory.mktemp("log"), content)
    lines = content.split(b"\n")
    expected = [line.removesuffix(b"\r") for line in lines[:-1]] + [line for line in lines[-1:] if line]
    with mock.patch.object(log_reader, "_MAX_ROWS", most_rows):
        assert records_of(path, chunk_bytes=chunk_bytes) == expected


def test_very_short_lines_come_in_chunks_of_bounded_rows(tmp_path: Path) -> None:
    path = written(tmp_path, b"\n" * 1000)
    with mock.patch.object(log_reader, "_MAX_ROWS", 100):
        heights = [chunk.frame.height for chunk in chunks_of(path)]
    assert max(heights) <= 100
    assert sum(heights) == 1000


def test_a_line_beyond_all_measure_is_cut_and_its_neighbours_are_whole(tmp_path: Path) -> None:
    path = written(tmp_path, b"before\n" + b"x" * 100_000 + b"\nafter\n")
    with mock.patch.object(log_reader, "MAX_RECORD_BYTES", 500):
        first, long, last = records_of(path, chunk_bytes=100)
    assert (first, last) == (b"before", b"after")
    assert 500 < len(long) < 1000


def test_a_line_that_is_cut_keeps_its_true_size(tmp_path: Path) -> None:
    path = written(tmp_path, b"before\n" + b"x" * 100_000 + b"\nafter\n" + b"y" * 70_000)
    with mock.patch.object(log_reader, "MAX_RECORD_BYTES", 500):
        frames = [chunk.frame for chunk in chunks_of(path, chunk_bytes=100)]
    sizes = [size for frame in frames for size in frame.get_column("__size", default=pl.Series([None] * frame.height))]
    assert [size for size in sizes if size is not None] == [100_000, 70_000]


def test_the_dead_letter_of_a_line_that_was_cut_says_how_long_it_was(tmp_path: Path) -> None:
    events = sw.stream("s", sw.sources.log(tmp_path)).decode(sw.formats.json("id long", max_bytes=10))
    letters = sw.sinks.memory()
    plan = sw.Pipeline("p", events.to(sw.sinks.memory()), events.dead_letters.to(letters)).plan()
    path = written(tmp_path, b'{"id": 1}\n{"id": ' + b"1" * 9_000 + b'}\n{"id":          1}\n')
    with mock.patch.object(log_reader, "MAX_RECORD_BYTES", 500):
        read = chunks_of(path, chunk_bytes=100)
    chunks = [
        Chunk(frame=c.frame, partition="0", file="f", first_offset=c.first_line, source="f", ingestion_ms=0)
        for c in read
    ]
    batch = MemoryEngine(plan=plan).run({"s": chunks}, replace(first_clock(plan), now_ms=0))
    messages = batch.outputs["s.dead_letters"]["message"].to_list()
    assert [message.rpartition("got ")[2] for message in messages] == ["9008", "18"]


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    "content, records",
    [
        pytest.param(BOM + b'{"a": 1}\nb\n', [b'{"a": 1}', b"b"], id="before the first line"),
        pytest.param(BOM, [], id="nothing else"),
        pytest.param(BOM + b"\n" + BOM + b"x", [b"", BOM + b"x"], id="only at the start of the file"),
        pytest.param(b"a\n", [b"a"], id="a file shorter than a mark"),
        pytest.param(b"a\nb", [b"a", b"b"], id="two lines as short as a mark"),
        pytest.param(b"\n\n\n", [b"", b"", b""], id="empty lines as short as a mark"),
        pytest.param(BOM[:2] + b"\nx", [BOM[:2], b"x"], id="half a mark"),
    ],
)
@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_byte_order_mark_at_the_start_of_a_file_is_skipped(
    tmp_path: Path, content: bytes, records: list[bytes], *, is_zipped: bool
) -> None:
    path = written(tmp_path, gzip.compress(content) if is_zipped else content, "0.jsonl" + ".gz" * is_zipped)
    for chunk_bytes in (1, 2, 1_000):
        assert records_of(path, chunk_bytes=chunk_bytes) == records


def test_compressed_lines_are_read(tmp_path: Path) -> None:
    lines = b"".join(b"%d\n" % number for number in range(10_000))
    zipped = written(tmp_path, gzip.compress(lines), "0.jsonl.gz")
    with pa.CompressedOutputStream(str(tmp_path / "1.jsonl.zst"), "zstd") as stream:
        stream.write(lines)
    expected = lines.split(b"\n")[:-1]
    assert records_of(zipped, chunk_bytes=1000) == expected
    assert records_of(tmp_path / "1.jsonl.zst", chunk_bytes=1000) == expected


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b"a\n" * 1000, mtime=0)[:-20]], ids=["no gzip", "cut short"]
)
def test_a_damaged_compressed_file_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content, "0.jsonl.gz")
    with pytest.raises(LogFileError, match=r"0\.jsonl\.gz is not") as caught:
        chunks_of(path)
    assert caught.value.code == "LOG_FILE_UNREADABLE"


def read_as_listed(path: Path, length: int, modified_ms: int) -> None:
    list(read_file(str(path), length=length, modified_ms=modified_ms, kind="json"))


def test_a_file_whose_length_or_time_changed_since_it_was_listed_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, b"abc\n")
    os.utime(path, ns=(0, 5_000_999_999))
    read_as_listed(path, 4, 5_000)
    for length, modified_ms in ((3, 5_000), (4, 5_001)):
        with pytest.raises(LogFileError, match="must not change") as caught:
            read_as_listed(path, length, modified_ms)
        assert caught.value.code == "LOG_FILE_CHANGED"


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match="no such file") as caught:
        read_as_listed(tmp_path / "gone.jsonl", 4, 0)
    assert caught.value.code == "LOG_FILE_CHANGED"


def test_a_file_that_grows_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\nb\n")
    status = path.stat()
    chunks = read_file(str(path), length=4, modified_ms=status.st_mtime_ns // 1_000_000, kind="json", chunk_bytes=2)
    next(chunks)
    with path.open("ab") as file:
        file.write(b"c\n")
    with pytest.raises(LogFileError, match="must not change"):
        list(chunks)


def test_the_error_crosses_from_worker_to_driver(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        read_as_listed(tmp_path / "gone.jsonl", 4, 0)
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (type(copy), copy.code, str(copy)) == (LogFileError, caught.value.code, str(caught.value))
