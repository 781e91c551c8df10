"""Which files a batch has, by Spark's log of a source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slackwater.connectors.log.spark_files import listed_files


def entry(folder: Path, name: str, *files: tuple[str, int, int]) -> None:
    """Write an entry of the log: path, time and entry of each file."""
    lines = [json.dumps({"path": path, "timestamp": time, "batchId": number}) for path, time, number in files]
    (folder / name).write_text("\n".join(["v1", *lines]))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Give a log of which the eleventh entry is a compaction, and those before are gone but for one."""
    older = [(f"file:///log/0/{number}.jsonl", number, number) for number in range(10)]
    entry(tmp_path, "8", older[8])
    entry(tmp_path, "9.compact", *older, ("file:///log/0/also.jsonl", 99, 9))
    entry(tmp_path, "10", ("file:///log/a%20%2523%3F/b%25.jsonl", 100, 10))
    return tmp_path


@pytest.mark.parametrize(
    "before, after, files",
    [
        pytest.param("-", '{"logOffset":0}', ["/log/0/0.jsonl"], id="the first, found in the compaction"),
        pytest.param('{"logOffset":7}', '{"logOffset":8}', ["/log/0/8.jsonl"], id="an entry of its own"),
        pytest.param('{"logOffset":8}', '{"logOffset":9}', ["/log/0/9.jsonl", "/log/0/also.jsonl"], id="a compaction"),
        pytest.param('{"logOffset":9}', '{"logOffset":10}', ["/log/a %23?/b%.jsonl"], id="odd names"),
        pytest.param('{"logOffset":10}', '{"logOffset":10}', [], id="nothing new"),
        pytest.param("-", "-", [], id="nothing ever"),
        pytest.param(
            '{"logOffset":7}',
            '{"logOffset":10}',
            ["/log/0/8.jsonl", "/log/0/9.jsonl", "/log/0/also.jsonl", "/log/a %23?/b%.jsonl"],
            id="several entries",
        ),
    ],
)
def test_files_between_two_offsets(log: Path, before: str, after: str, files: list[str]) -> None:
    assert [path for path, _ in listed_files(log, [before], [after], 0)] == files


def test_without_the_batch_before_only_its_own_entry_counts(log: Path) -> None:
    assert [path for path, _ in listed_files(log, [], ['{"logOffset":8}'], 0)] == ["/log/0/8.jsonl"]


def test_times_are_those_that_were_listed(log: Path) -> None:
    assert list(listed_files(log, ["-"], ['{"logOffset":0}'], 0)) == [("/log/0/0.jsonl", 0)]


def test_a_log_that_had_no_file_yet_lists_none(tmp_path: Path) -> None:
    assert list(listed_files(tmp_path, [], ['{"logOffset":-1}'], 0)) == []
