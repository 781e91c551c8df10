from __future__ import annotations

import gzip
import os
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.clock.next_clock import first_clock
from slackwater.errors import RunError
from slackwater.memory.engine import MemoryEngine
from slackwater.sources.chunk import Chunk
from slackwater.sources.log import reading as log_reader
from slackwater.sources.log.listing import file_position, named_offset, natural, reading_order
from slackwater.sources.log.reading import (
    Lines,
    LogFile,
    LogFileError,
    list_log,
    read_file,
    strays,
)


def chunks_of(
    path: Path, *, kind: str = "json", chunk_bytes: int = 1 << 20, columns: list[str] | None = None
) -> list[Lines]:
    status = path.stat()
    return list(
        read_file(
            str(path),
            length=status.st_size,
            modified_ms=status.st_mtime_ns // 1_000_000,
            kind=kind,  # type: ignore[arg-type]
            chunk_bytes=chunk_bytes,
            columns=columns,
        )
    )


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


def frame_of(chunks: list[Lines]) -> pl.DataFrame:
    heights = [chunk.frame.height for chunk in chunks]
    assert [chunk.first_line for chunk in chunks] == [sum(heights[:at]) for at in range(len(heights))]
    return pl.concat([chunk.frame for chunk in chunks])


@pytest.mark.parametrize("row_group_size", [7, 100, 1000])
@pytest.mark.parametrize("chunk_bytes", [1, 500, 1 << 20])
def test_parquet_is_read_in_order_whatever_its_row_groups(
    tmp_path: Path, row_group_size: int, chunk_bytes: int
) -> None:
    frame = pl.DataFrame({"n": range(1000), "s": [f"text {number}" for number in range(1000)]})
    path = tmp_path / "0.parquet"
    frame.write_parquet(path, row_group_size=row_group_size)
    chunks = chunks_of(path, kind="parquet", chunk_bytes=chunk_bytes)
    assert frame_of(chunks).equals(frame)
    if chunk_bytes == 500:
        assert max(chunk.frame.height for chunk in chunks) < 100


def test_parquet_is_narrowed_to_the_columns_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pl.DataFrame({"a": [1], "b": [2], "c": [3]}).write_parquet(path)
    [chunk] = chunks_of(path, kind="parquet", columns=["c", "a", "new"])
    assert set(chunk.frame.columns) == {"a", "c"}
    [chunk] = chunks_of(path, kind="parquet", columns=["new"])
    assert chunk.frame.height == 1


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_parquet_times_come_in_microseconds_and_utc(tmp_path: Path, chunk_bytes: int) -> None:
    noon = datetime(2024, 1, 31, 12, tzinfo=UTC)
    naive = pl.Series([noon.replace(tzinfo=None)] * 2)
    frame = pl.DataFrame(
        {
            "ms": naive.cast(pl.Datetime("ms")),
            "ns": naive.cast(pl.Datetime("ns")),
            "tokyo": naive.dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
            "nested": pl.Series([[noon], None]),
            "word": pl.Series(["a", "b"], dtype=pl.Categorical),
        }
    )
    path = tmp_path / "0.parquet"
    frame.write_parquet(path)
    read = frame_of(chunks_of(path, kind="parquet", chunk_bytes=chunk_bytes))
    time = pl.Datetime("us", "UTC")
    assert read.schema == {"ms": time, "ns": time, "tokyo": time, "nested": pl.List(time), "word": pl.String}
    assert read.row(0) == (noon, noon, noon, [noon], "a")


def test_parquet_without_rows_has_no_chunks(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pl.DataFrame(schema={"a": pl.Int64}).write_parquet(path)
    assert chunks_of(path, kind="parquet") == []


@pytest.mark.parametrize("damage", ["no parquet", "cut", "spoiled", "empty"])
def test_a_damaged_parquet_file_is_an_error_that_names_it(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "7.parquet"
    pl.DataFrame({"n": range(10_000), "s": ["x"] * 10_000}).write_parquet(path)
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "no parquet": b"PAR1 or so",
            "cut": content[:-100],
            "spoiled": content[:100] + b"\xff" * (middle - 100) + content[middle:],
            "empty": b"",
        }[damage]
    )
    with pytest.raises(LogFileError, match=r"7\.parquet is not") as caught:
        chunks_of(path, kind="parquet")
    assert caught.value.code == "LOG_FILE_UNREADABLE"


def test_a_log_lists_its_complete_files_by_partition(tmp_path: Path) -> None:
    for name in ("b/1.jsonl", "a/2.jsonl", "a/1.jsonl", "0.jsonl", "a/deep/3.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n")
        os.utime(tmp_path / name, ns=(0, 7_000_000))
    for name in (".hidden.jsonl", "a/.1.jsonl.tmp", "_marker", ".git/x", "_temporary/0.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n")
    assert list_log(tmp_path) == [
        LogFile(path=str(tmp_path / name), partition=partition, length=2, modified_ms=7)
        for name, partition in (
            ("0.jsonl", ""),
            ("a/1.jsonl", "a"),
            ("a/2.jsonl", "a"),
            ("a/deep/3.jsonl", "a/deep"),
            ("b/1.jsonl", "b"),
        )
    ]
    assert strays(tmp_path) == [str(tmp_path / "_marker"), str(tmp_path / "_temporary/0.jsonl")]


def test_names_are_passed_over_by_the_rule_of_spark(tmp_path: Path) -> None:
    for name in ("_a", "_a=1", "_metadata", "b._COPYING_", "c"):
        (tmp_path / name).write_bytes(b"x\n")
    assert [Path(file.path).name for file in list_log(tmp_path)] == ["_a=1", "_metadata", "c"]
    assert [Path(path).name for path in strays(tmp_path)] == ["_a"]


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert list_log(tmp_path / "none") == []
    assert strays(tmp_path / "none") == []


def test_partitions_are_the_folders_below_the_root(tmp_path: Path) -> None:
    for name in ("0.jsonl", "p1/0.jsonl", "eu/p1/0.jsonl", "a b/0.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n")
    assert [file.partition for file in list_log(tmp_path)] == ["", "a b", "eu/p1", "p1"]


def test_names_are_in_order_with_their_numbers_as_numbers() -> None:
    names = [
        "part-10.jsonl",
        "part-9.jsonl",
        "part-09.jsonl",
        "part-9-b.jsonl",
        "10",
        "9",
        "a",
        "",
        "2026-10-1",
        "2026-9-30",
    ]
    assert sorted(names, key=natural) == [
        "", "9", "10", "2026-9-30", "2026-10-1", "a",
        "part-9-b.jsonl", "part-09.jsonl", "part-9.jsonl", "part-10.jsonl",
    ]  # fmt: skip


def test_files_are_read_by_time_then_partition_then_name() -> None:
    def file(time: int, partition: str, name: str) -> LogFile:
        return LogFile(path=f"/log/{partition}/{name}", partition=partition, length=1, modified_ms=time)

    files = [file(1, "2", "a"), file(1, "10", "a"), file(1, "10", "b2"), file(1, "10", "b10"), file(2, "0", "a")]
    mixed = [files[place] for place in (3, 0, 4, 2, 1)]
    assert sorted(mixed, key=reading_order) == files


@pytest.mark.parametrize(
    "name, offset",
    [
        ("00000000000000000012.jsonl", 12),
        ("00000000000000000012.jsonl.gz", 12),
        ("7.parquet", 7),
        ("part-7.jsonl", None),
        ("9" * 20 + ".jsonl", None),
        ("9223372036854775806.jsonl", None),
        ("²³.jsonl", None),
        (".jsonl", None),
    ],
)
def test_a_name_of_digits_is_the_offset_of_the_first_record(name: str, offset: int | None) -> None:
    assert named_offset(f"/log/p/{name}") == offset


@pytest.mark.parametrize("name", [f"{2**63 - 2**40}.jsonl", f"{2**63 - 1}.jsonl"])
def test_the_offsets_of_a_files_records_fit_64_bits_whatever_its_name(name: str) -> None:
    assert (named_offset(f"/log/p/{name}") or 0) + 2**40 - 1 <= 2**63 - 1


def test_no_two_records_of_a_partition_have_the_same_place() -> None:
    assert file_position(8) - file_position(7) == 2**32
    assert file_position(2**31 - 1) + 2**32 - 1 == 2**63 - 1


@pytest.mark.parametrize("link, target", [("0/up", ".."), ("0/self", "self"), ("again", "0"), ("0/b.jsonl", "a.jsonl")])
def test_a_link_that_leads_back_into_the_log_is_an_error(tmp_path: Path, link: str, target: str) -> None:
    (tmp_path / "log" / "0").mkdir(parents=True)
    (tmp_path / "log" / "0" / "a.jsonl").write_bytes(b"x\n")
    (tmp_path / "log" / link).symlink_to(target)
    with pytest.raises(RunError, match=rf"LOG_LINK.*{link} points to .*; remove the link"):
        list_log(tmp_path / "log")


def test_links_that_lead_round_in_a_circle_outside_the_log_are_an_error(tmp_path: Path) -> None:
    for folder in ("log", "x", "y"):
        (tmp_path / folder).mkdir()
    (tmp_path / "log" / "p").symlink_to("../x")
    (tmp_path / "x" / "q").symlink_to("../y")
    (tmp_path / "y" / "r").symlink_to("../x")
    with pytest.raises(RunError, match=r"LOG_LINK.*p/q/r points to .*/x;"):
        list_log(tmp_path / "log")


def test_a_link_that_leads_out_of_the_log_is_followed_and_one_that_leads_nowhere_is_a_stray(tmp_path: Path) -> None:
    for folder in ("log", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "elsewhere" / "a.jsonl").write_bytes(b"x\n")
    (tmp_path / "log" / "p").symlink_to("../elsewhere")
    (tmp_path / "log" / "q").symlink_to("../elsewhere")
    (tmp_path / "log" / "gone.jsonl").symlink_to("../gone")
    assert [file.partition for file in list_log(tmp_path / "log")] == ["p", "q"]
    assert strays(tmp_path / "log") == [str(tmp_path / "log" / "gone.jsonl")]


def test_names_that_are_not_utf_8_are_listed_and_read(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + "/zürich".encode("latin-1")
    os.mkdir(folder)  # noqa: PTH102  the name is bytes
    with open(folder + b"/\xff.jsonl", "wb") as written:  # noqa: PTH123
        written.write(b"x\n")
    [file] = list_log(tmp_path)
    assert file.partition == "z\\xfcrich"
    [chunk] = read_file(file.path, length=2, modified_ms=file.modified_ms, kind="json")
    assert chunk.frame["__payload"].to_list() == [b"x"]
    with pytest.raises(LogFileError, match=r"z\\xfcrich/\\xff\.jsonl was listed"):
        list(read_file(file.path, length=3, modified_ms=file.modified_ms, kind="json"))
