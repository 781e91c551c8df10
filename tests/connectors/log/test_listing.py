"""Which files a log has, in which order they are read, and where their records are."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.log.listing import (
    ListedFile,
    file_position,
    modified_ms,
    named_offset,
    natural,
    reading_order,
)
from slackwater.connectors.log.reading import LogFile, LogFileError, list_log, read_file, strays
from slackwater.connectors.source import TaskFacts


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
        "",
        "9",
        "10",
        "2026-9-30",
        "2026-10-1",
        "a",
        "part-9-b.jsonl",
        "part-09.jsonl",
        "part-9.jsonl",
        "part-10.jsonl",
    ]


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
        ("00000000000000000007.parquet", 7),
        ("7.parquet", None),
        ("20260301.jsonl", None),
        ("part-7.jsonl", None),
        ("9" * 20 + ".jsonl", None),
        ("9223372036854775806.jsonl", None),
        ("²³.jsonl", None),
        (".jsonl", None),
    ],
)
def test_a_name_of_twenty_digits_is_the_offset_of_the_first_record(name: str, offset: int | None) -> None:
    assert named_offset(f"/log/p/{name}") == offset


@pytest.mark.parametrize("name", [f"{2**63 - 2**40:020d}.jsonl", f"{2**63 - 1:020d}.jsonl"])
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


@pytest.mark.parametrize(
    "name, shown", [("20260301.jsonl", [0, 1]), ("2026-03-01.jsonl", [0, 1]), ("00000000000000000040.jsonl", [40, 41])]
)
def test_records_are_shown_by_their_line_unless_the_writer_named_the_file(
    tmp_path: Path, name: str, shown: list[int]
) -> None:
    path = tmp_path / name
    path.write_text("a\nb\n")
    status = path.stat()
    facts = {"length": status.st_size, "modified_ms": modified_ms(status), "listing": 0}
    listed = ListedFile(path=str(path), partition="p", number=7, **facts)
    lines = pa.RecordBatch.from_pydict({"value": [json.dumps(asdict(listed))]})
    [chunk] = sw.sources.log(tmp_path).chunks(iter([lines]), TaskFacts(stream="s", number=0, rows_before=0, now_ms=0))
    assert chunk.first_offset == file_position(7)
    assert [chunk.shown_offset, (chunk.shown_offset or 0) + 1] == shown
