"""A log of Avro files: typed rows, as Parquet's are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.connectors.log.reading import LogFileError, list_log, read_file
from slackwater.connectors.log.source import LogSource

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "key", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def write(path: Path, rows: list[dict[str, Any]], *, codec: str = "null", schema: dict[str, Any] = SCHEMA) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, codec=codec)


def row(number: int) -> dict[str, Any]:
    return {"id": number, "key": None if number % 2 else "a", "at": NOON, "kind": "B"}


def read(source: LogSource, **options: Any) -> list[tuple[int, pl.DataFrame]]:  # noqa: ANN401
    [file] = list_log(source.path)
    chunks = read_file(file.path, length=file.length, modified_ms=file.modified_ms, kind="avro", **options)
    return [(chunk.first_line, chunk.frame) for chunk in chunks]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_file_is_typed_rows(codec: str, tmp_path: Path) -> None:
    write(tmp_path / "0" / "0.avro", [row(number) for number in range(5)], codec=codec)
    source = sw.sources.log(tmp_path, format="avro")
    assert str(source) == f"log {tmp_path} (Avro)"
    assert source.schema == pl.Schema(
        {"id": pl.Int64(), "key": pl.String(), "at": pl.Datetime("us", "UTC"), "kind": pl.String()}
    )
    [(first, frame)] = read(source)
    assert first == 0
    assert frame.rows()[:2] == [(0, "a", NOON, "B"), (1, None, NOON, "B")]


def test_large_file_comes_in_chunks_and_columns_can_be_chosen(tmp_path: Path) -> None:
    write(tmp_path / "0" / "0.avro", [row(number) for number in range(1000)])
    chunks = read(sw.sources.log(tmp_path, format="avro"), chunk_bytes=1_000, columns=["id", "gone"])
    assert len(chunks) > 2
    assert [first for first, _ in chunks] == [
        sum(frame.height for _, frame in chunks[:at]) for at in range(len(chunks))
    ]
    assert pl.concat([frame for _, frame in chunks])["id"].to_list() == list(range(1000))


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with_map = {**SCHEMA, "fields": [{"name": "m", "type": {"type": "map", "values": "long"}}]}
    write(tmp_path / "map" / "0.avro", [{"m": {"a": 1}}], schema=with_map)
    with pytest.raises(DefinitionError, match=r"LOG_SCHEMA_UNREADABLE.*0\.avro.*give schema="):
        sw.sources.log(tmp_path, format="avro")
    source = sw.sources.log(tmp_path, format="avro", schema="id long")
    with pytest.raises(LogFileError, match="LOG_FILE_UNREADABLE"):
        read(source)
    (tmp_path / "map" / "0.avro").write_bytes(b"no avro at all")
    with pytest.raises(LogFileError, match="LOG_FILE_UNREADABLE"):
        read(source)
