"""Rows of a test as a frame of the declared columns; no value is rounded, parsed or reinterpreted to make it fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final

import polars as pl

from slackwater.base.errors import DefinitionError, cause_of, refuse
from slackwater.formats.schemas import fits, shown, spark_type, whole_type

_KINDS: Final[dict[type[pl.DataType], tuple[type, ...]]] = {
    pl.Boolean: (bool,),
    pl.String: (str,),
    pl.Binary: (bytes, bytearray, memoryview),
    pl.Datetime: (datetime,),
    pl.Date: (date,),
    pl.Time: (time,),
    pl.Duration: (timedelta,),
    pl.Decimal: (Decimal, Integral),
    pl.List: (Sequence, pl.Series),
    pl.Struct: (Mapping,),
}


def typed_frame(rows: list[Mapping[str, Any]] | pl.DataFrame, schema: pl.Schema, stream: str) -> pl.DataFrame:
    """Return `rows` with the columns of `schema`, or raise an error that names the first value of another type."""
    try:
        return _of_frame(rows, schema, stream) if isinstance(rows, pl.DataFrame) else _of_rows(rows, schema, stream)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise refuse("TEST_ROW_TYPES", stream=stream, got=cause_of(error), known=shown(schema)) from error


def _of_frame(rows: pl.DataFrame, schema: pl.Schema, stream: str) -> pl.DataFrame:
    for name, dtype in schema.items():
        if not fits(rows[name].dtype, dtype):
            raise _unfit(stream, schema, name, f"values of type {rows[name].dtype}")
    return rows.select(schema.names()).cast(schema)


def _of_rows(rows: list[Mapping[str, Any]], schema: pl.Schema, stream: str) -> pl.DataFrame:
    if strange := sorted({name for row in rows for name in row} - set(schema)):
        got = f"unknown columns {', '.join(map(repr, strange))}"
        raise refuse("TEST_ROW_TYPES", stream=stream, got=got, known=shown(schema))
    _check(rows, schema, stream, _holds)
    try:
        return pl.DataFrame(rows, schema=schema, orient="row")
    except (pl.exceptions.PolarsError, OverflowError):
        _check(rows, schema, stream, _has_room)
        raise


def _check(
    rows: list[Mapping[str, Any]], schema: pl.Schema, stream: str, test: Callable[[pl.DataType, object], bool]
) -> None:
    for name, dtype in schema.items():
        for row in rows:
            if not test(dtype, row.get(name)):
                raise _unfit(stream, schema, name, f"{row[name]!r:.80}")


def _unfit(stream: str, schema: pl.Schema, name: str, value: str) -> DefinitionError:
    got = f"{value} in column `{name}`, which is {spark_type(schema[name], name)}"
    return refuse("TEST_ROW_TYPES", stream=stream, got=got, known=shown(schema))


def _holds(dtype: pl.DataType, value: object) -> bool:
    """Return whether a column of type `dtype` holds `value` as it is; a whole number may become a float."""
    if value is None:
        return True
    if dtype.is_integer() or dtype.is_float():
        return isinstance(value, Integral if dtype.is_integer() else Real) and not isinstance(value, bool)
    if isinstance(value, bool) != (dtype == pl.Boolean) or not isinstance(value, _KINDS.get(type(dtype), object)):
        return False
    if isinstance(dtype, pl.List) and isinstance(value, Sequence):
        return not isinstance(value, str) and all(_holds(whole_type(dtype.inner), each) for each in value)
    if isinstance(dtype, pl.Struct) and isinstance(value, Mapping):
        return all(_holds(whole_type(field.dtype), value.get(field.name)) for field in dtype.fields)
    return not (isinstance(dtype, pl.Date) and isinstance(value, datetime))


def _has_room(dtype: pl.DataType, value: object) -> bool:
    try:
        pl.Series([value], dtype=dtype, strict=True)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        return False
    return True
