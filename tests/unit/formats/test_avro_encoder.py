"""Rows become Avro as other libraries write it; what cannot be written is refused when the pipeline is built."""

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

from slackwater.errors import DefinitionError, RunError
from slackwater.formats import avro as typed_avro
from slackwater.formats.avro import AvroEncoder
from slackwater.formats.ddl import map_type

avro: Any = typed_avro  # untyped: schemas are dicts
OUTPUTS: Any = importlib.import_module("slackwater.formats.avro.outputs")
ENCODING: Any = importlib.import_module("slackwater.formats.avro.encoding")
MOMENT = datetime(2026, 11, 16, 7, 30, 0, 123456, tzinfo=UTC)
UUID_TEXT = "0f8fad5b-d9cb-469f-a165-70867728950e"
FIXED_UUID = UUID(UUID_TEXT).bytes  # fastavro leaves it as it is


def record(*fields: Any, name: str = "R") -> dict[str, Any]:  # noqa: ANN401
    return {"type": "record", "name": name, "fields": list(fields)}


def of_type(kind: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return record({"name": "a", "type": kind, **more})


def fixed(size: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "fixed", "name": "F", "size": size, **more}


def decimal(precision: int, scale: int = 0) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def long(logical: str) -> dict[str, Any]:
    return {"type": "long", "logicalType": logical}


def column(*values: Any, dtype: Any) -> pl.DataFrame:  # noqa: ANN401
    return pl.DataFrame({"a": pl.Series(values, dtype=dtype)})


def encoded(schema: Any, frame: pl.DataFrame) -> list[bytes]:  # noqa: ANN401
    encoder: AvroEncoder = avro(schema).encoder(frame.schema, subject="orders-value")
    return encoder.encode(frame).to_list()


def derived(schema: dict[str, Any], subject: str = "orders-value") -> Any:  # noqa: ANN401
    return json.loads(avro().encoder(pl.Schema(schema), subject=subject).text)


def read(schema: Any, payload: bytes) -> Any:  # noqa: ANN401
    """Return what fastavro reads, having read all of it."""
    source = io.BytesIO(payload)
    found = fastavro.schemaless_reader(source, schema, None)
    assert source.tell() == len(payload)
    return found


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


def test_nulls_within_nulls_are_told_apart() -> None:
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


@pytest.mark.parametrize(
    "name, schema",
    [
        ("max value", {"max value": pl.Int64()}),
        ("a.größe", {"a": pl.Struct({"größe": pl.Int64()})}),
        ("1", {"1": pl.Int8()}),
    ],
)
def test_a_name_that_avro_does_not_allow_is_refused(name: str, schema: dict[str, pl.DataType]) -> None:
    with pytest.raises(DefinitionError, match=rf"got `{name}`; rename it with .select") as caught:
        derived(schema)
    assert caught.value.code == "AVRO_COLUMN_NAME"


@pytest.mark.parametrize(
    "dtype, got",
    [
        (pl.Duration("us"), r"Duration\(.*\) in `a`"),
        (pl.Time(), "Time in `a`"),
        (pl.Null(), "Null in `a`"),
        (pl.Object(), "Object in `a`"),
        (pl.Int128(), "Int128 in `a`"),
        (pl.List(pl.Time()), r"Time in `a\[\]`"),
        (pl.Struct({"x": pl.Time()}), r"Time in `a.x`"),
        (map_type(pl.Time()), r"Time in `a\[\]`"),
        (pl.Struct({}), "a struct without fields in `a`"),
    ],
)
def test_a_type_that_avro_does_not_have_is_refused(dtype: pl.DataType, got: str) -> None:
    with pytest.raises(DefinitionError, match=f"got {got}; cast it") as caught:
        derived({"a": dtype})
    assert caught.value.code == "AVRO_NO_TYPE"


def test_columns_of_too_many_levels_are_refused() -> None:
    dtype: pl.DataType = pl.Int64()
    for _ in range(20):
        dtype = pl.List(dtype)
    with pytest.raises(DefinitionError, match="got more than 32 levels of nested types") as caught:
        derived({"a": dtype})
    assert caught.value.code == "AVRO_SCHEMA"


@pytest.mark.parametrize(
    "kind, dtype, fitting",
    [
        ("int", pl.Int64(), "long"),
        ("int", pl.UInt32(), "long"),
        ("long", pl.UInt64(), '{"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}'),
        ("long", pl.Datetime("us", "UTC"), '{"type": "long", "logicalType": "timestamp-micros"}'),
        (long("timestamp-micros"), pl.Int64(), "long"),
        ("float", pl.Float64(), "double"),
        ("float", pl.Int32(), "int"),
        ("double", pl.Int64(), "long"),
        ("string", pl.Int64(), "long"),
        ("string", pl.Binary(), "bytes"),
        ("bytes", pl.String(), "string"),
        ("boolean", pl.Int8(), "int"),
        (decimal(9, 2), pl.Decimal(10, 2), '{"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}'),
        (decimal(10, 3), pl.Decimal(10, 2), '{"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}'),
        ({"type": "int", "logicalType": "date"}, pl.Int32(), "int"),
        (fixed(16, logicalType="uuid"), pl.Binary(), "bytes"),
        (fixed(3), pl.String(), "string"),
        ({"type": "array", "items": "string"}, pl.String(), "string"),
        ({"type": "map", "values": "int"}, pl.List(pl.Int32()), '{"type": "array", "items": ["null", "int"]}'),
        (record({"name": "x", "type": "int"}, name="W"), pl.Int32(), "int"),
    ],
)
def test_a_column_that_its_field_may_not_hold_is_refused(kind: Any, dtype: pl.DataType, fitting: str) -> None:  # noqa: ANN401
    for schema in (of_type(kind), of_type(["null", kind])):
        with pytest.raises(DefinitionError) as caught:
            avro(schema).encoder(pl.Schema({"a": dtype}), subject="s")
        assert caught.value.code == "AVRO_COLUMN_TYPE"
        assert f"got {dtype} for " in str(caught.value)
        assert "in field `a`; cast the column with .with_columns(...), or " in str(caught.value)
        assert str(caught.value).endswith(f"declare the field as {fitting}")


def test_a_column_of_the_wrong_type_is_told_with_its_place() -> None:
    inner = record({"name": "x", "type": {"type": "array", "items": "int"}}, name="W")
    schema = pl.Schema({"a": pl.Struct({"x": pl.List(pl.Int64())})})
    with pytest.raises(DefinitionError, match=r"got Int64 for int in field `a.x\[\]`"):
        avro(of_type(inner)).encoder(schema, subject="s")


@pytest.mark.parametrize(
    "schema, got",
    [
        ({"id": pl.Int64(), "cents": pl.Int64()}, r"column `cents` without a field \(did you mean `cent`\?\)"),
        ({"cent": pl.Int64()}, "field `id`, which has no default, without a column"),
        ({"id": pl.Int64(), "cent": pl.Int64(), "pane": pl.String()}, "column `pane` without a field"),
    ],
)
def test_columns_and_fields_that_are_not_the_same_are_refused(schema: dict[str, pl.DataType], got: str) -> None:
    form = avro(record({"name": "id", "type": "long"}, {"name": "cent", "type": "long"}, name="shop.Order"))
    with pytest.raises(DefinitionError, match=rf"record `shop.Order`.*; got {got}; choose the columns") as caught:
        form.encoder(pl.Schema(schema), subject="s")
    assert caught.value.code == "AVRO_COLUMNS"


@pytest.mark.parametrize(
    "kind, frame, words",
    [
        ("string", column("x", None, dtype=pl.String), "got null in 1 of 2 values in field `a`; declare it as a union"),
        (
            {"type": "array", "items": "int"},
            column([1, None], dtype=pl.List(pl.Int32)),
            r"got null in 1 of 2 values in field `a\[\]`",
        ),
        (fixed(3), column(b"abc", b"ab", dtype=pl.Binary), "got 2 bytes in field `a`; values must have 3 bytes"),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            column("A", "C", dtype=pl.String),
            "got 'C' in field `a`; use one of A, B",
        ),
        (fixed(16, logicalType="uuid"), column("no", dtype=pl.String), "got 'no' in field `a`; write UUIDs as"),
        (
            {"type": "string", "logicalType": "uuid"},
            column(UUID_TEXT + "0", dtype=pl.String),
            f"got '{UUID_TEXT}0' in field `a`",
        ),
        (
            {"type": "int", "logicalType": "time-millis"},
            column(1, 2**31, dtype=pl.Int64),
            "got 2147483648, which has too many digits in field `a`; declare a type that holds it",
        ),
        (
            long("timestamp-nanos"),
            column(datetime(2300, 1, 1, tzinfo=UTC), dtype=pl.Datetime("us", "UTC")),
            "got 10413792000000000, which has too many digits",
        ),
        (
            {"type": "map", "values": "int"},
            column([{"key": "x", "value": 1}, {"key": "x", "value": 2}], dtype=map_type(pl.Int32())),
            "got the key 'x' twice in one map in field `a`; keep one entry per key",
        ),
        (
            {"type": "map", "values": "int"},
            column([{"key": None, "value": 1}], dtype=map_type(pl.Int32())),
            "got a null key in field `a`; remove these entries",
        ),
        (
            {"type": "map", "values": "int"},
            column([None], dtype=map_type(pl.Int32())),
            "got a null key in field `a`",
        ),
    ],
)
def test_a_value_that_its_field_cannot_hold_stops_the_batch(kind: Any, frame: pl.DataFrame, words: str) -> None:  # noqa: ANN401
    with pytest.raises(RunError, match=words) as caught:
        encoded(of_type(kind), frame)
    assert caught.value.code == "AVRO_VALUE"


def test_the_same_key_in_two_maps_is_fine() -> None:
    frame = column([{"key": "x", "value": 1}], [{"key": "x", "value": 2}], dtype=map_type(pl.Int32()))
    schema = of_type({"type": "map", "values": "int"})
    assert [read(schema, payload)["a"] for payload in encoded(schema, frame)] == [{"x": 1}, {"x": 2}]


def test_a_format_without_a_schema_only_writes() -> None:
    assert str(avro()) == "Avro"
    with pytest.raises(DefinitionError, match="Avro records are read with one schema") as caught:
        _ = avro().schema
    assert caught.value.code == "AVRO_ARGUMENTS"
    with pytest.raises(DefinitionError, match="got invalid JSON"):
        avro("")
