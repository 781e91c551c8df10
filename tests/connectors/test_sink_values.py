"""Values at the edge of what a sink can write: they have a text, or an error that names the column."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import time, timedelta
from pathlib import Path

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.files.sink import files
from slackwater.connectors.http.sink.requests import Requests
from slackwater.connectors.kafka.sink.records import JsonValues
from slackwater.connectors.postgres.sink.csv_rows import CsvField, CsvRows
from slackwater.connectors.redis.sink.rows import RedisHashes
from slackwater.connectors.sink import SinkBatch, Slot
from slackwater.testing import SinkHarness


@pytest.mark.parametrize("nested", [False, True])
def test_value_that_has_no_text_is_named_with_its_sink_output_and_column(tmp_path: Path, *, nested: bool) -> None:
    never = pl.Series("at", [0, 2**63 - 1]).cast(pl.Datetime("us", "UTC"))
    rows = pl.DataFrame({"id": [1, 2], "at": never})
    rows = rows.with_columns(at=pl.struct(when="at")) if nested else rows
    sink = files(tmp_path, format="json")
    with pytest.raises(RunError, match=r"SINK_VALUE.*of output `test` cannot write `at` in batch 0: .*range"):
        SinkHarness(sink=sink, schema=rows.schema, output="test").deliver(rows)


def test_durations_and_times_of_day_have_a_text_in_redis() -> None:
    rows = pl.DataFrame({"user": ["ann"], "took": [timedelta(seconds=90)], "at": [time(12, 30)]})
    batch = SinkBatch(batch=0, schema=rows.schema, rows=1, frames=lambda: iter([rows]))
    hashes = RedisHashes(key=("user",), columns=None, prefix=None)
    [chunk] = hashes.chunks(batch, Slot(pipeline="p", output="o", schema=rows.schema), reserved="slackwater:")
    assert json.loads(chunk) == {"key": ["ann"], "gone": [False], "1": ["PT1M30S"], "2": ["12:30:00"]}


def _batch(rows: pl.DataFrame) -> tuple[SinkBatch, Slot]:
    batch = SinkBatch(batch=0, schema=rows.schema, rows=rows.height, frames=lambda: iter([rows]))
    return batch, Slot(pipeline="p", output="o", schema=rows.schema)


def _of_files(rows: pl.DataFrame, folder: Path) -> list[str]:
    SinkHarness(sink=files(folder, format="json"), schema=rows.schema).deliver(rows)
    [written] = folder.glob("batch-*/part-*.jsonl")
    return written.read_text().splitlines()


def _of_kafka(rows: pl.DataFrame, _: Path) -> list[str]:
    return [value.decode() for value in JsonValues().encode(rows)]


def _of_http(rows: pl.DataFrame, _: Path) -> list[str]:
    batch, slot = _batch(rows)
    [lanes] = Requests(slot=slot, run="r", batch=0, key=(), batch_rows=1).lanes(batch)
    return [body for lane in lanes for request in lane for body in request.bodies]


def _of_redis(rows: pl.DataFrame, _: Path) -> list[str]:
    batch, slot = _batch(rows.select("user", row=pl.struct(pl.all())))
    [chunk] = RedisHashes(key=("user",), columns=None, prefix=None).chunks(batch, slot, reserved="slackwater:")
    texts: list[str] = json.loads(chunk)["1"]
    return texts


def _of_postgres(rows: pl.DataFrame, _: Path) -> list[str]:
    nested = rows.select(row=pl.struct(pl.all()))
    field = CsvField(source="row", name="row", dtype=nested.schema["row"])
    written = CsvRows(fields=(field,), replace_nul=None).encoded(nested)
    return [row for [row] in csv.reader(written.decode().splitlines())]


@pytest.mark.parametrize("written", [_of_files, _of_kafka, _of_http, _of_redis, _of_postgres])
def test_numbers_that_json_has_no_form_for_are_null(
    tmp_path: Path, written: Callable[[pl.DataFrame, Path], list[str]]
) -> None:
    values = [float("nan"), float("inf"), float("-inf"), 0.5, None]
    rows = pl.DataFrame({"user": ["a", "b", "c", "d", "e"], "v": values, "all": [values] * 5})
    found = [json.loads(line, parse_constant=pytest.fail) for line in written(rows, tmp_path)]
    assert [row["v"] for row in found] == [None, None, None, 0.5, None]
    assert all(row["all"] == [None, None, None, 0.5, None] for row in found)
