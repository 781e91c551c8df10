"""Rows become Avro as other libraries write it, by a schema that is given or made from the columns."""

from __future__ import annotations

import importlib
import io
import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import polars as pl
import pytest

from slackwater.formats.avro import AvroEncoder
from slackwater.formats.ddl import map_type
from tests.formats.avro.avro_records import (
    UUID_TEXT,
    avro,
    column,
    decimal,
    derived,
    encoded,
    fixed,
    long,
    of_type,
    read,
    record,
)

OUTPUTS: Any = importlib.import_module("slackwater.formats.avro.outputs")
ENCODING: Any = importlib.import_module("slackwater.formats.avro.encoding")
MOMENT = datetime(2026, 11, 16, 7, 30, 0, 123456, tzinfo=UTC)
FIXED_UUID = UUID(UUID_TEXT).bytes  # fastavro leaves it as it is


@pytest.mark.parametrize(
    "kind, dtype, value, expected",
    [
        ("boolean", pl.Boolean, True, True),
        ("int", pl.Int8, -128, -128),
        ("int", pl.UInt16, 65535, 65535),
        ("int", pl.Int32, -(2**31), -(2**31)),
        ("long", pl.UInt32, 2**32 - 1, 2**32 - 1),
        ("long", pl.Int64, -(2**63), -(2**63)),
        ("long", pl.Int64, 2**63 - 1, 2**63 - 1),
        ("float", pl.Float32, 0.5, 0.5),
        ("float", pl.Int16, -3, -3.0),
        ("double", pl.Float64, 0.1, 0.1),
        ("double", pl.Float32, 0.5, 0.5),
        ("double", pl.UInt32, 2**32 - 1, float(2**32 - 1)),
        ("bytes", pl.Binary, b"\x00\xff", b"\x00\xff"),
        ("string", pl.String, "größer ☃ 🌊", "größer ☃ 🌊"),
        ("string", pl.Categorical, "x", "x"),
        ("string", pl.Enum(["x", "y"]), "y", "y"),
        ({"type": "string", "logicalType": "uuid"}, pl.String, UUID_TEXT, UUID_TEXT),
        (fixed(16, logicalType="uuid"), pl.String, UUID_TEXT, FIXED_UUID),
        (fixed(3), pl.Binary, b"abc", b"abc"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pl.String, "B", "B"),
        ({"type": "enum", "name": "E", "symbols": ["B", "A"]}, pl.Enum(["A", "B"]), "A", "A"),
        ({"type": "int", "logicalType": "date"}, pl.Date, date(1969, 12, 31), date(1969, 12, 31)),
        ({"type": "int", "logicalType": "time-millis"}, pl.Int64, 5000, "00:00:05"),
        (long("time-micros"), pl.Int64, 5_000_000, "00:00:05"),
        (long("timestamp-millis"), pl.Datetime("us", "UTC"), MOMENT, MOMENT.replace(microsecond=123000)),
        (long("timestamp-micros"), pl.Datetime("us", "UTC"), MOMENT, MOMENT),
        (long("timestamp-micros"), pl.Datetime("ms", "UTC"), MOMENT, MOMENT.replace(microsecond=123000)),
        (long("timestamp-micros"), pl.Datetime("us"), MOMENT.replace(tzinfo=None), MOMENT),
        (long("timestamp-micros"), pl.Datetime("ns", "Asia/Tokyo"), MOMENT, MOMENT),
        (long("local-timestamp-micros"), pl.Datetime("us", "UTC"), MOMENT, MOMENT.replace(tzinfo=None)),
        (decimal(10, 2), pl.Decimal(10, 2), Decimal("-1.28"), Decimal("-1.28")),
        (decimal(38, 2), pl.Decimal(10, 2), Decimal("12345678.90"), Decimal("12345678.90")),
        (decimal(20), pl.UInt64, 2**64 - 1, Decimal(2**64 - 1)),
        (fixed(4, logicalType="decimal", precision=9, scale=1), pl.Decimal(9, 1), Decimal("-0.1"), Decimal("-0.1")),
        (fixed(20, logicalType="decimal", precision=9, scale=1), pl.Decimal(9, 1), Decimal("-0.1"), Decimal("-0.1")),
        ({"type": "array", "items": "int"}, pl.List(pl.Int32), [1, -1, 300], [1, -1, 300]),
        ({"type": "array", "items": "int"}, pl.Array(pl.Int32, 2), [7, 8], [7, 8]),
        ({"type": "map", "values": "long"}, pl.Map(pl.String, pl.Int64), {"x": 1, "y": 2}, {"x": 1, "y": 2}),
        (["string"], pl.String, "alone in its union", "alone in its union"),
        (["string", "null"], pl.String, "first", "first"),
        (["null", "string"], pl.String, "second", "second"),
    ],
)
def test_a_value_is_read_by_another_library(kind: Any, dtype: Any, value: Any, expected: Any) -> None:  # noqa: ANN401
    frame = column(value, value, dtype=dtype)
    for payload in encoded(of_type(kind), frame):
        found = read(of_type(kind), payload)["a"]
        assert (str(found) if isinstance(expected, str) else found) == expected


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -64, -65, 2**55, -(2**55) - 1, 2**62, 2**63 - 1, -(2**63)])
def test_numbers_are_as_long_as_they_need_to_be(number: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, of_type("long"), {"a": number})
    theirs = out.getvalue()
    assert encoded(of_type("long"), column(number, 0, number, dtype=pl.Int64)) == [theirs, b"\x00", theirs]


@pytest.mark.parametrize("bits", range(7, 127, 8))
def test_decimals_are_as_long_as_they_need_to_be(bits: int) -> None:
    numbers = [sign * (2**bits + off) for sign in (1, -1) for off in (-1, 0, 1)]
    frame = column(*map(Decimal, [each for each in numbers if abs(each) < 10**38]), dtype=pl.Decimal(38, 0))
    for number, payload in zip(frame["a"], encoded(of_type(decimal(38)), frame), strict=True):
        size = int(number).bit_length() // 8 + 1 if number >= 0 else (int(number) + 1).bit_length() // 8 + 1
        assert payload == bytes([2 * size]) + int(number).to_bytes(size, "big", signed=True)


def test_nulls_are_written_where_the_union_has_null() -> None:
    frame = column(None, "x", None, dtype=pl.String)
    assert encoded(of_type(["null", "string"]), frame) == [b"\x00", b"\x02\x02x", b"\x00"]
    assert encoded(of_type(["string", "null"]), frame) == [b"\x02", b"\x00\x02x", b"\x02"]
    assert encoded(of_type(["null", "string"]), frame.head(1)) == [b"\x00"]


def test_nulls_within_nulls_stay_where_they_are() -> None:
    dtype = pl.List(pl.Struct({"x": pl.List(pl.Int64)}))
    values: list[Any] = [None, [], [None], [{"x": None}], [{"x": []}], [{"x": [None, 5]}, None, {"x": [6]}]]
    frame = column(*values, dtype=dtype)
    encoder = avro().encoder(frame.schema, subject="orders-value")
    records = encoder.encode(frame)
    assert [read(json.loads(encoder.text), payload)["a"] for payload in records] == values
    assert avro(encoder.text).decoder().decode(records).frame.equals(frame)


def test_a_struct_that_is_null_hides_what_is_in_it() -> None:
    inner = pl.DataFrame({"x": ["seen", "hidden"], "y": [[1], [2, 3]]}).to_struct("a")
    frame = pl.DataFrame([inner.set(pl.Series([False, True]), None)])
    encoder = avro().encoder(frame.schema, subject="orders-value")
    found = [read(json.loads(encoder.text), payload) for payload in encoder.encode(frame)]
    assert found == [{"a": {"x": "seen", "y": [1]}}, {"a": None}]


@pytest.mark.parametrize("size", [0, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 8192, 3_000_000])
def test_texts_of_every_length_leave_their_neighbours_alone(size: int) -> None:
    texts = ["before", "é" * size, "", "x" * size, "y" * (size + 1), "after"]
    frame = pl.DataFrame({"a": texts, "b": range(6), "c": [[text, text] for text in reversed(texts)]})
    encoder = avro().encoder(frame.schema, subject="orders-value")
    found = [read(json.loads(encoder.text), payload) for payload in encoder.encode(frame)]
    assert found == frame.to_dicts()


@pytest.mark.parametrize("rows_at_once", [1, 3, 1000])
def test_rows_are_in_order_however_many_are_written_at_once(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENCODING, "_ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(OUTPUTS, "_ITEMS_AT_ONCE", rows_at_once)
    frame = pl.DataFrame({"a": range(10), "b": [[str(number)] * number for number in range(10)]})
    encoder = avro().encoder(frame.schema, subject="orders-value")
    assert avro(encoder.text).decoder().decode(encoder.encode(frame)).frame.equals(frame)


def test_large_rows_are_written_a_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENCODING, "_BYTES_AT_ONCE", 100)
    assert encoded(of_type("string"), column("x" * 40, "y" * 300, "z", dtype=pl.String)) == [
        b"\x50" + b"x" * 40,
        b"\xd8\x04" + b"y" * 300,
        b"\x02z",
    ]


def test_no_rows_are_no_records() -> None:
    frame = pl.DataFrame(schema={"a": pl.String, "b": pl.List(pl.Int64), "c": pl.Struct({"d": pl.Decimal(5, 2)})})
    records = avro().encoder(frame.schema, subject="orders-value").encode(frame)
    assert records.dtype == pl.Binary
    assert records.len() == 0


def test_a_frame_in_slices_and_chunks_is_written_as_it_is() -> None:
    whole = pl.DataFrame({"a": ["one", "two", None, "four"], "b": [[1], [2, 2], [], None]})
    frame = pl.concat([whole[1:], whole[:2]], rechunk=False)[1:4]
    encoder = avro().encoder(frame.schema, subject="orders-value")
    assert avro(encoder.text).decoder().decode(encoder.encode(frame)).frame.equals(frame)


def test_columns_are_found_by_name() -> None:
    schema = record({"name": "x", "type": "int"}, {"name": "y", "type": "string"})
    frame = pl.DataFrame({"y": ["t"], "x": [1]}, schema={"y": pl.String, "x": pl.Int32})
    encoder = avro(schema).encoder(frame.schema, subject="s")
    assert encoder.encode(frame).to_list() == encoder.encode(frame.select("x", "y")).to_list() == [b"\x02\x02t"]


def test_a_frame_of_other_columns_than_the_encoders_is_a_bug() -> None:
    encoder = avro().encoder(pl.Schema({"a": pl.Int64()}), subject="s")
    with pytest.raises(pl.exceptions.SchemaError):
        encoder.encode(pl.DataFrame({"a": [1.5]}))


def test_a_field_without_a_column_is_written_as_its_default() -> None:
    added = {"name": "b", "type": {"type": "array", "items": "string"}, "default": ["new", "x" * 40]}
    within = record({"name": "x", "type": "int"}, {"name": "y", "type": ["null", "int"], "default": None}, name="W")
    schema = record({"name": "a", "type": within}, added)
    frame = column({"x": 1}, {"x": 2}, dtype=pl.Struct({"x": pl.Int32}))
    assert [read(schema, payload) for payload in encoded(schema, frame)] == [
        {"a": {"x": 1, "y": None}, "b": ["new", "x" * 40]},
        {"a": {"x": 2, "y": None}, "b": ["new", "x" * 40]},
    ]


def test_an_encoder_travels() -> None:
    frame = column("x", None, dtype=pl.String)
    encoder: AvroEncoder = avro().encoder(frame.schema, subject="s")
    copy = pickle.loads(pickle.dumps(encoder))  # noqa: S301  our own bytes
    assert copy.encode(frame).to_list() == encoder.encode(frame).to_list() == [b"\x02\x02x", b"\x00"]


def test_a_schema_is_made_from_the_columns() -> None:
    schema = {
        "id": pl.Int64(),
        "big": pl.UInt64(),
        "at": pl.Datetime("us", "UTC"),
        "at_ms": pl.Datetime("ms", "UTC"),
        "at_ns": pl.Datetime("ns", "UTC"),
        "price": pl.Decimal(10, 2),
        "lines": pl.List(pl.Struct({"sku": pl.String(), "day": pl.Date()})),
        "tags": map_type(pl.Struct({"sku": pl.Boolean()})),
    }
    sku = {"name": "sku", "type": ["null", "string"], "default": None}
    day = {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None}
    lines = {"type": "record", "name": "lines", "namespace": "shop_orders", "fields": [sku, day]}
    tag = {"name": "sku", "type": ["null", "boolean"], "default": None}
    tags = {"type": "record", "name": "tags", "namespace": "shop_orders", "fields": [tag]}
    types = {
        "id": "long",
        "big": decimal(20),
        "at": long("timestamp-micros"),
        "at_ms": long("timestamp-millis"),
        "at_ns": long("timestamp-nanos"),
        "price": decimal(10, 2),
        "lines": {"type": "array", "items": ["null", lines]},
        "tags": {"type": "map", "values": ["null", tags]},
    }
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in types.items()]
    assert derived(schema, "shop.orders-value") == {"type": "record", "name": "shop_orders", "fields": fields}


@pytest.mark.parametrize(
    "subject, name",
    [("orders-value", "orders"), ("orders-key", "orders_key"), ("2nd", "_2nd"), ("-value", "_"), ("größe", "gr__e")],
)
def test_a_record_has_the_subjects_name_as_far_as_avro_allows_it(subject: str, name: str) -> None:
    assert derived({"a": pl.Int64()}, subject)["name"] == name


def test_records_of_one_name_in_different_places_are_different_types() -> None:
    point = pl.Struct({"x": pl.Int64(), "b": pl.Struct({"c": pl.Int64()})})
    frame = pl.DataFrame(
        {"a": [{"x": 1, "b": {"c": 2}}], "a_b": [{"x": 3, "b": {"c": 4}}]}, schema={"a": point, "a_b": point}
    )
    encoder = avro().encoder(frame.schema, subject="orders-value")
    assert read(json.loads(encoder.text), encoder.encode(frame)[0]) == frame.to_dicts()[0]


def test_the_same_key_in_two_maps_is_fine() -> None:
    frame = column([{"key": "x", "value": 1}], [{"key": "x", "value": 2}], dtype=map_type(pl.Int32()))
    schema = of_type({"type": "map", "values": "int"})
    assert [read(schema, payload)["a"] for payload in encoded(schema, frame)] == [{"x": 1}, {"x": 2}]
