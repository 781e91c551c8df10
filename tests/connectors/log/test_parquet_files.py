"""Parquet files of a log are read in order, in chunks, and damaged ones are named."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from slackwater.connectors.log.reading import Lines, LogFileError
from tests.connectors.log.log_chunks import chunks_of


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
