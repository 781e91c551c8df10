"""Rows as JSON objects, column by column: bytes become base64, times RFC 3339, NaN and infinity null."""

from __future__ import annotations

from typing import Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from slackwater.base.errors import row_error

_USUAL_DAYS: Final = 365_000
"""Every time within this many days of 1970 can be written as text; the actual limit depends on the type."""
_PER_DAY: Final = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def json_objects(frame: pl.DataFrame) -> pl.Series:
    """Return each row as a JSON object in a string."""
    return bytes_as_base64(frame).select(row=pl.struct(pl.all()).struct.json_encode()).to_series()


def bytes_as_base64(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `frame` with all bytes in base64, at any depth, so that JSON can hold them."""
    return frame.with_columns(
        _encoded(pl.col(name), dtype).alias(name) for name, dtype in frame.schema.items() if _holds_bytes(dtype)
    )


def check_json(frame: pl.DataFrame) -> None:
    """Raise if a value cannot be written as JSON; encodes only columns whose types or bounds do not settle it."""
    for name in frame.columns:
        column = frame.select(name)
        if _surely_has_json(column.to_series()):
            continue
        try:
            json_objects(column)
        except (PolarsError, PanicException) as error:
            raise row_error("JSON_VALUE", column=name, cause=str(error).strip().partition("\n")[0]) from error


def _surely_has_json(column: pl.Series) -> bool:
    dtype = column.dtype
    if isinstance(dtype, pl.Date | pl.Datetime):
        per_day = _PER_DAY[dtype.time_unit] if isinstance(dtype, pl.Datetime) else 1
        reach = _USUAL_DAYS * per_day
        return bool(column.to_physical().is_between(-reach, reach).all())
    return dtype.is_numeric() or isinstance(dtype, pl.String | pl.Binary | pl.Boolean | pl.Categorical | pl.Enum)


def _holds_bytes(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.List):
        return _holds_bytes(_known(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return any(_holds_bytes(_known(field.dtype)) for field in dtype.fields)
    return isinstance(dtype, pl.Binary)


def _encoded(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if not _holds_bytes(dtype):
        return value
    if isinstance(dtype, pl.List):
        return value.list.eval(_encoded(pl.element(), _known(dtype.inner)))
    if isinstance(dtype, pl.Struct):
        fields = [
            _encoded(value.struct.field(field.name), _known(field.dtype)).alias(field.name) for field in dtype.fields
        ]
        return pl.when(value.is_not_null()).then(pl.struct(fields))
    return value.bin.encode("base64")


def _known(dtype: object) -> pl.DataType:
    """Return an inner type, which for a column with values is always an instance."""
    assert isinstance(dtype, pl.DataType)
    return dtype
