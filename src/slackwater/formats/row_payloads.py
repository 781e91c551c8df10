"""Typed rows as JSON, whatever they contain: the payloads of dead letters from sources without raw bytes.

Values that JSON can represent are written so that `formats.json` reads them back exactly: decimals with all digits,
bytes as base64. Other values become strings that describe them, and that no decoder accepts as a value of the type:

- floating-point numbers that are not finite: "NaN", "Infinity", "-Infinity"
- times and dates outside the years 1 to 9999: "9223372036854775807 us since 1970-01-01"
- types that cannot be declared but that a step may produce: a duration is "1500 ms", others as Python prints them
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Final

import polars as pl

from slackwater.formats.json_lines import are_times_usual, is_plain, to_lines

_NOT_FINITE: Final = {"NaN": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
_NULL: Final = "null"
_text: Final = json.JSONEncoder(ensure_ascii=False).encode


def row_payloads(rows: pl.DataFrame) -> pl.Series:
    """Return each row as a JSON object in bytes; never fails, whatever the values."""
    if all(is_plain(column) for column in rows.get_columns()):
        lines = to_lines(rows).split(b"\n")[:-1]
    else:
        lines = [text.encode() for text in _objects(rows.get_columns(), rows.height)]
    return pl.Series(lines, dtype=pl.Binary)


def readable_values(column: pl.Series) -> list[object]:
    """Return the values of a column for people to read; never fails: values that Python cannot hold become text."""
    return [json.loads(text) for text in _texts(column)]


def _objects(columns: list[pl.Series], height: int) -> list[str]:
    if not columns:
        return ["{}"] * height
    named = [[f"{_text(column.name)}:{text}" for text in _texts(column)] for column in columns]
    return ["{" + ",".join(row) + "}" for row in zip(*named, strict=True)]


def _texts(column: pl.Series) -> list[str]:  # noqa: PLR0911  one return per kind of type
    """Return the JSON of each value; works on columns, because Python cannot hold all values."""
    dtype = column.dtype
    if isinstance(dtype, pl.Struct):
        objects = _objects(column.struct.unnest().get_columns(), len(column))
        return [_NULL if is_null else text for text, is_null in zip(objects, column.is_null(), strict=True)]
    if isinstance(dtype, pl.Map):
        return _texts(column.cast(pl.List(pl.Struct({"key": dtype.key, "value": dtype.value}))))
    if isinstance(dtype, pl.Array):
        return _texts(column.cast(pl.List(dtype.inner)))
    if isinstance(dtype, pl.List):
        items = iter(_texts(column.drop_nulls().explode(empty_as_null=False)))
        return [_NULL if size is None else "[" + ",".join(islice(items, size)) + "]" for size in column.list.len()]
    if dtype.is_float():
        return [_NULL if value is None else _NOT_FINITE.get(value, value) for value in column.cast(pl.String)]
    if dtype.is_integer() or isinstance(dtype, pl.Decimal):
        return [_NULL if value is None else value for value in column.cast(pl.String)]
    if isinstance(dtype, pl.Date | pl.Datetime):
        return [_text(value) for value in _moments(column)]
    return [_text(value) for value in _plain_values(column)]


def _plain_values(column: pl.Series) -> Iterable[object]:
    """Return the values in a form that `json` can write."""
    dtype = column.dtype
    if isinstance(dtype, pl.String | pl.Boolean | pl.Null):
        return column
    if isinstance(dtype, pl.Binary):
        return column.bin.encode("base64")
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if isinstance(dtype, pl.Duration):
        return column.to_physical().cast(pl.String) + f" {dtype.time_unit}"
    if isinstance(dtype, pl.Time):
        return column.dt.to_string("%H:%M:%S%.f")
    return (None if value is None else str(value) for value in column.to_list())


def _moments(column: pl.Series) -> pl.Series:
    """Return times as ISO 8601 in UTC, or as their distance from the epoch if ISO 8601 cannot express them."""
    dtype, whole = column.dtype, column.to_physical()
    is_usual = are_times_usual(column)
    usual = whole.zip_with(is_usual, whole.clear(len(whole)))
    if isinstance(dtype, pl.Datetime):
        unit, written = str(dtype.time_unit), usual.cast(pl.Datetime(dtype.time_unit, "UTC")).dt.to_string("%+")
    else:
        unit, written = "days", usual.cast(pl.Date).dt.to_string("%Y-%m-%d")
    return written.zip_with(is_usual, whole.cast(pl.String) + f" {unit} since 1970-01-01")
