from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from unittest import mock

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError
from slackwater.connectors.log import writing as log_writer
from slackwater.connectors.log.listing import named_offset
from slackwater.connectors.log.reading import list_log, read_file
from slackwater.connectors.log.writing import LogWriter
from slackwater.formats.json import JsonDecoder
from slackwater.formats.json import json as json_format

NEVER = None


def log_of(folder: Path, partition: str = "0") -> list[tuple[int, bytes]]:
    """Return offsets and bytes of a partition's records, after checking that nothing temporary is left."""
    assert not list(folder.rglob(".*"))
    records: list[tuple[int, bytes]] = []
    for file in list_log(folder):
        if file.partition != partition:
            continue
        base = named_offset(file.path)
        assert base is not None
        for chunk in read_file(file.path, length=file.length, modified_ms=file.modified_ms, kind="json"):
            lines = chunk.frame["__payload"].to_list()
            records += [(base + chunk.first_line + at, line) for at, line in enumerate(lines)]
    return records


def numbered(count: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in range(count)]


def test_records_get_offsets_from_zero_in_a_file_named_by_the_first(tmp_path: Path) -> None:
    with LogWriter(tmp_path, roll_after=NEVER) as writer:
        writer.append({"a": 1, "b": "é"})
        writer.append('{"a":2}')
        writer.append(b"\xff broken")
    assert [path.name for path in (tmp_path / "0").iterdir()] == ["00000000000000000000.jsonl"]
    assert log_of(tmp_path) == [(0, b'{"a":1,"b":"\\u00e9"}'), (1, b'{"a":2}'), (2, b"\xff broken")]


def test_files_roll_when_they_are_large_enough(tmp_path: Path) -> None:
    with LogWriter(tmp_path, roll_bytes=10, roll_after=NEVER) as writer:
        for number in range(10):
            writer.append(f"{number:04}")
    names = sorted(path.name for path in (tmp_path / "0").iterdir())
    assert [int(name.removesuffix(".jsonl")) for name in names] == [0, 2, 4, 6, 8]


def test_nothing_is_seen_of_a_file_before_it_is_complete(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, roll_after=NEVER)
    writer.append("0")
    assert list_log(tmp_path) == []
    writer.flush()
    assert log_of(tmp_path) == numbered(1)
    writer.close()


def test_a_file_that_is_old_enough_completes_by_itself(tmp_path: Path) -> None:
    fired = threading.Event()
    writer = LogWriter(tmp_path, roll_after="1ms")
    expire = writer._expire

    def expire_and_tell(part: log_writer._Partition, published: int) -> None:
        expire(part, published)
        fired.set()

    with mock.patch.object(writer, "_expire", expire_and_tell):
        writer.append("0")
        assert fired.wait(30)
    assert log_of(tmp_path) == numbered(1)
    writer.close()


def test_an_old_timer_does_not_complete_a_new_file(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, roll_after=NEVER)
    writer.append("0")
    part = writer._partitions["0"]
    writer.flush()
    writer.append("1")
    writer._expire(part, 0)
    assert len(list_log(tmp_path)) == 1
    writer._expire(part, 1)
    assert log_of(tmp_path) == numbered(2)


def test_a_failure_behind_the_scenes_reaches_the_next_caller(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, roll_after=NEVER)
    writer.append("0")
    with mock.patch.object(os, "fsync", side_effect=OSError("disk full")):
        writer._expire(writer._partitions["0"], 0)
    with pytest.raises(OSError, match="disk full"):
        writer.append("1")
    writer.append("0")
    writer.close()
    assert log_of(tmp_path) == numbered(1)


@pytest.mark.parametrize("last", [b"2\n", b"2"])
def test_a_restart_continues_at_the_right_offset(tmp_path: Path, last: bytes) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "00000000000000000000.jsonl").write_bytes(b"0\n1\n" + last)
    with LogWriter(tmp_path, roll_after=NEVER) as writer:
        writer.append("3")
    assert log_of(tmp_path) == numbered(4)


def test_two_writers_of_one_partition_never_share_an_offset(tmp_path: Path) -> None:
    first, second = LogWriter(tmp_path, roll_after=NEVER), LogWriter(tmp_path, roll_after=NEVER)
    first.append("0")
    second.append("2")
    first.append("1")
    first.flush()
    second.append("3")
    second.flush()
    first.append("4")
    first.close()
    second.append("5")
    second.close()
    assert log_of(tmp_path) == numbered(6)


def test_threads_lose_and_double_nothing(tmp_path: Path) -> None:
    with LogWriter(tmp_path, roll_bytes=100, roll_after="1ms") as writer:

        def work(worker: int) -> None:
            for number in range(200):
                writer.append(f"{worker}-{number}", partition=str(number % 2))

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = [*log_of(tmp_path, "0"), *log_of(tmp_path, "1")]
    assert sorted(line for _, line in records) == sorted(
        f"{worker}-{number}".encode() for worker in range(4) for number in range(200)
    )
    assert [offset for offset, _ in log_of(tmp_path, "1")] == list(range(400))


def test_processes_writing_to_one_partition_lose_and_double_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from slackwater.connectors.log.writing import LogWriter\n"
        "with LogWriter(sys.argv[1], roll_bytes=50, roll_after=None) as writer:\n"
        "    for number in range(60): writer.append(f'{sys.argv[2]}-{number}')\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in "ab"]
    assert [worker.wait() for worker in workers] == [0, 0]
    records = log_of(tmp_path)
    assert [offset for offset, _ in records] == list(range(120))
    for name in "ab":
        own = [line.decode() for _, line in records if line.decode().startswith(name)]
        assert own == [f"{name}-{number}" for number in range(60)]


def test_files_of_a_partition_have_strictly_rising_times(tmp_path: Path) -> None:
    with LogWriter(tmp_path, roll_bytes=1, roll_after=NEVER) as writer:
        for number in range(20):
            writer.append(str(number))
    times = [file.modified_ms for file in list_log(tmp_path)]
    assert times == sorted(set(times))


def test_times_rise_after_a_restart_even_if_the_clock_went_back(tmp_path: Path) -> None:
    with LogWriter(tmp_path, roll_after=NEVER) as writer:
        writer.append("0")
    ahead_ms = 4_000_000_000_000
    os.utime(list_log(tmp_path)[0].path, ns=(0, ahead_ms * 1_000_000))
    with LogWriter(tmp_path, roll_after=NEVER) as writer:
        writer.append("1")
    assert [file.modified_ms for file in list_log(tmp_path)] == [ahead_ms, ahead_ms + 1]


def test_what_a_dead_writer_left_is_removed_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    living = LogWriter(tmp_path, roll_after=NEVER)
    living.append("0")
    leftover = tmp_path / "0" / ".dead.jsonl.tmp"
    leftover.write_bytes(b"half a rec")
    other = LogWriter(tmp_path, roll_after=NEVER)
    other.append("1")
    assert not leftover.exists()
    living.close()
    other.close()
    assert log_of(tmp_path) == numbered(2)


@pytest.mark.parametrize("failing", ["fsync", "link"])
def test_a_failed_file_leaves_no_trace_and_the_next_takes_its_offset(tmp_path: Path, failing: str) -> None:
    writer = LogWriter(tmp_path, roll_after=NEVER)
    writer.append("lost")
    with mock.patch.object(os, failing, side_effect=OSError("no space left")), pytest.raises(OSError, match="no space"):
        writer.flush()
    assert list(tmp_path.rglob("*.jsonl*")) == []
    writer.append("0")
    writer.close()
    assert log_of(tmp_path) == numbered(1)


def test_a_file_system_without_links_gets_renames_that_replace_nothing(tmp_path: Path) -> None:
    with mock.patch.object(os, "link", side_effect=PermissionError(1, "no links here")):
        first, second = LogWriter(tmp_path, roll_after=NEVER), LogWriter(tmp_path, roll_after=NEVER)
        first.append("0")
        second.append("1")
        first.close()
        second.close()
    assert log_of(tmp_path) == numbered(2)


def test_partitions_are_folders_and_have_their_own_offsets(tmp_path: Path) -> None:
    with LogWriter(tmp_path, roll_after=NEVER) as writer:
        for partition in ("0", "eu/1", ""):
            writer.append("0", partition=partition)
            writer.append("1", partition=partition)
    for partition in ("0", "eu/1", ""):
        assert log_of(tmp_path, partition) == numbered(2)


@pytest.mark.parametrize("partition", ["_x", ".x", "a/_b", "..", "a/../../b", "/abs", "a\x00"])
def test_partitions_that_no_reader_would_find_are_refused(tmp_path: Path, partition: str) -> None:
    with LogWriter(tmp_path) as writer, pytest.raises(DefinitionError, match="subfolder") as caught:
        writer.append("0", partition=partition)
    assert caught.value.code == "LOG_WRITER_OPTION"


DDL = "i long, f double, s string, t timestamp, d date, b binary, ok boolean, l array<int>, x struct<y:timestamp>"
ROW = {
    "i": 2**62,
    "f": 0.1,
    "s": 'é"\n\x00',
    "t": datetime(2024, 1, 31, 12, 0, 0, 5, tzinfo=UTC),
    "d": date(2024, 1, 31),
    "b": b"\x00\xff",
    "ok": True,
    "l": [1, None],
    "x": {"y": datetime(1969, 12, 31, 23, tzinfo=UTC)},
}
MORE_DDL = "p decimal(10,2), n array<binary>, g array<double>"
MORE = {"p": Decimal("12.34"), "n": [b"\x01"], "g": [0.5]}


@pytest.mark.parametrize("ddl, row", [(DDL, ROW), (f"{DDL}, {MORE_DDL}", ROW | MORE)])
@pytest.mark.parametrize("way", ["records", "frame"])
def test_what_is_appended_is_decoded_as_it_was(tmp_path: Path, ddl: str, row: dict[str, object], way: str) -> None:
    form = json_format(ddl)
    rows = [row, dict.fromkeys(row)]
    with LogWriter(tmp_path) as writer:
        if way == "frame":
            writer.append_frame(pl.DataFrame(rows, schema=form.schema))
        else:
            for each in rows:
                writer.append(each)
    decoded = JsonDecoder(form).decode(pl.Series([line for _, line in log_of(tmp_path)]))
    assert decoded.bad.is_empty()
    assert decoded.frame.to_dicts() == rows


def test_naive_times_are_taken_as_utc(tmp_path: Path) -> None:
    noon = datetime(2024, 1, 31, 12)  # noqa: DTZ001
    with LogWriter(tmp_path) as writer:
        writer.append({"t": noon})
        writer.append_frame(pl.DataFrame({"t": [noon]}))
    decoded = JsonDecoder(json_format("t timestamp")).decode(pl.Series([line for _, line in log_of(tmp_path)]))
    assert decoded.frame["t"].to_list() == [noon.replace(tzinfo=UTC)] * 2


@pytest.mark.parametrize(
    "record, words",
    [
        ("two\nlines", "must not contain a newline"),
        (b"a\n", "must not contain a newline"),
        (
            {"a": float("nan")},
            "values that JSON can represent; field `a` is nan, which JSON cannot represent; convert it",
        ),
        ({"a": Decimal("0.1234567890123456789")}, "field `a` is a Decimal, which JSON cannot represent exactly"),
        ({"b": 1, "at": timedelta(1)}, "; field `at` is a timedelta, which JSON cannot represent; convert it"),
        ({"a": [object()]}, "field `a` contains an object, which JSON cannot represent"),
        ([1], "a mapping, a string or bytes; got list"),
    ],
)
def test_records_that_a_line_cannot_hold_are_refused(tmp_path: Path, record: object, words: str) -> None:
    with LogWriter(tmp_path) as writer, pytest.raises(DefinitionError, match=words) as caught:
        writer.append(record)  # type: ignore[arg-type]
    assert caught.value.code == "LOG_RECORD"
    assert list_log(tmp_path) == []


def test_a_frame_with_a_number_that_json_lacks_is_refused_and_not_written_as_null(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as writer, pytest.raises(DefinitionError, match="JSON can represent"):
        writer.append_frame(pl.DataFrame({"a": [[1.0, float("inf")]]}))


@pytest.mark.parametrize("dtype", [pl.Datetime("ms", "UTC"), pl.Datetime("us"), pl.Date()], ids=str)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_frame_with_a_time_beyond_the_year_9999_is_refused(
    tmp_path: Path, dtype: pl.DataType, *, is_nested: bool
) -> None:
    far = pl.Series([None, 2**62 if isinstance(dtype, pl.Datetime) else 2**30], dtype=pl.Int64).cast(dtype)
    frame = pl.DataFrame({"at": far}).select(at=pl.struct("at").implode() if is_nested else pl.col("at"))
    words = rf"between years 1 and 9999; got \d+ in `{'at.at' if is_nested else 'at'}`"
    with LogWriter(tmp_path) as writer, pytest.raises(DefinitionError, match=words):
        writer.append_frame(frame)
    assert list_log(tmp_path) == []


def test_a_closed_writer_takes_no_records(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.close()
    with pytest.raises(DefinitionError, match="a closed log writer"):
        writer.append("x")


@pytest.mark.parametrize(
    "options, code",
    [
        ({"format": "csv"}, "LOG_WRITER_OPTION"),
        ({"roll_bytes": 0}, "LOG_WRITER_OPTION"),
        ({"roll_after": "0s"}, "DURATION_TOO_SHORT"),
    ],
)
def test_unusable_options_are_refused(tmp_path: Path, options: dict[str, object], code: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        LogWriter(tmp_path, **options)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_a_parquet_log_takes_frames_and_mappings_and_continues(tmp_path: Path) -> None:
    with LogWriter(tmp_path, format="parquet", roll_after=NEVER) as writer:
        writer.append_frame(pl.DataFrame({"n": [0, 1], "s": ["a", None]}))
        writer.append({"n": 2, "s": "c"})
        writer.append({"n": 3})
        with pytest.raises(DefinitionError, match="takes mappings and frames"):
            writer.append("4")
    with LogWriter(tmp_path, format="parquet", roll_after=NEVER) as writer:
        writer.append_frame(pl.DataFrame({"n": [4], "s": ["e"]}))
    files = list_log(tmp_path)
    assert [named_offset(file.path) for file in files] == [0, 4]
    frame = pl.concat([pl.read_parquet(file.path) for file in files])
    assert frame.to_dict(as_series=False) == {"n": [0, 1, 2, 3, 4], "s": ["a", None, "c", None, "e"]}


def test_an_empty_frame_makes_no_file(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as writer:
        writer.append_frame(pl.DataFrame({"n": []}))
    assert list_log(tmp_path) == []


def test_lines_are_plain_json(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as writer:
        writer.append_frame(pl.DataFrame({"n": range(1000), "s": ["x"] * 1000}))
    assert [json.loads(line)["n"] for _, line in log_of(tmp_path)] == list(range(1000))
