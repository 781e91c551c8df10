"""What cannot be written as Avro is refused, most of it when the pipeline is built."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError, RunError
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
    record,
)


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


def test_a_column_of_the_wrong_type_is_reported_with_its_place() -> None:
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
        ({"type": "map", "values": "int"}, column([None], dtype=map_type(pl.Int32())), "got a null key in field `a`"),
    ],
)
def test_a_value_that_its_field_cannot_hold_stops_the_batch(kind: Any, frame: pl.DataFrame, words: str) -> None:  # noqa: ANN401
    with pytest.raises(RunError, match=words) as caught:
        encoded(of_type(kind), frame)
    assert caught.value.code == "AVRO_VALUE"


def test_a_format_without_a_schema_only_writes() -> None:
    assert str(avro()) == "Avro"
    with pytest.raises(DefinitionError, match="Avro records are read with one schema") as caught:
        _ = avro().schema
    assert caught.value.code == "AVRO_ARGUMENTS"
    with pytest.raises(DefinitionError, match="got invalid JSON"):
        avro("")
