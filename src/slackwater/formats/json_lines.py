"""Writes records as lines of JSON that `formats.json` reads back exactly."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import polars as pl

from slackwater.base.errors import refuse

Record = Mapping[str, Any] | str | bytes
"""One record: fields to be written as JSON, or a line to be written unchanged."""

_FIRST_DAY: Final = (date.min - date(1970, 1, 1)).days
_LAST_DAY: Final = (date.max - date(1970, 1, 1)).days
_PER_DAY: Final = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


class _NotJsonError(TypeError):
    def __init__(self, value: object) -> None:
        kind = type(value).__name__
        article, exactly = "an" if kind[0] in "aeiouAEIOU" else "a", " exactly" if isinstance(value, Decimal) else ""
        super().__init__(f"{article} {kind}, which JSON cannot represent{exactly}")
        self.value = value


def to_line(record: Record) -> bytes:
    """Return a record as one line with its newline; a line given as text is not parsed."""
    if isinstance(record, str | bytes):
        line = record.encode() if isinstance(record, str) else bytes(record)
        if b"\n" in line:
            raise refuse(
                "LOG_RECORD",
                rule="a line of a log must not contain a newline",
                got=f"got {line[:60]!r}",
                remedy="append its lines one by one",
            )
        return line + b"\n"
    if not isinstance(record, Mapping):
        raise refuse(
            "LOG_RECORD",
            rule="a record must be a mapping, a string or bytes",
            got=f"got {type(record).__name__}",
            remedy="append_frame takes whole frames",
        )
    try:
        return _json(dict(record)).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise refuse(
            "LOG_RECORD",
            rule="a record must contain only values that JSON can represent",
            got=_unfit(record, error),
            remedy="convert it, or write the line yourself and append it as a string",
        ) from error


def _json(fields: dict[Any, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), default=_plain, allow_nan=False)


def _unfit(record: Mapping[str, Any], error: Exception) -> str:
    """Describe the field that caused `error`."""
    for name, value in record.items():
        try:
            _json({name: value})
        except _NotJsonError as found:
            return f"field `{name}` {'is' if found.value is value else 'contains'} {found}"
        except (TypeError, ValueError) as found:
            is_number = isinstance(value, float)
            return f"field `{name}` " + (f"is {value}, which JSON cannot represent" if is_number else f"fails: {found}")
    return str(error)


def to_lines(frame: pl.DataFrame) -> bytes:
    """Return a frame's rows as lines; vectorised, unless a column must be written value by value."""
    if frame.width == 0:
        return b"{}\n" * frame.height
    if not all(is_plain(column) for column in frame.get_columns()):
        for column in frame.get_columns():
            _check_times(column, column.name)
        return b"".join(map(to_line, frame.iter_rows(named=True)))
    binary = pl.selectors.binary()
    lines = BytesIO()
    frame.with_columns(binary.bin.encode("base64")).write_ndjson(lines)
    return lines.getvalue()


def is_plain(column: pl.Series, *, is_nested: bool = False) -> bool:
    """Return whether Polars writes a column so that `formats.json` reads it back (it writes NaN as null)."""
    dtype = column.dtype
    if isinstance(dtype, pl.List):
        return is_plain(column.explode(empty_as_null=False), is_nested=True)
    if isinstance(dtype, pl.Struct):
        return all(is_plain(field, is_nested=True) for field in column.struct.unnest().get_columns())
    if dtype.is_float():
        return bool(column.is_finite().all())
    if isinstance(dtype, pl.Binary):
        return not is_nested
    if isinstance(dtype, pl.Date | pl.Datetime):
        return bool(are_times_usual(column).all())
    return dtype.is_integer() or isinstance(dtype, pl.String | pl.Boolean)


def are_times_usual(column: pl.Series) -> pl.Series:
    """Return which times or dates are null or in the years 1 to 9999, the only ones that ISO 8601 and Python know."""
    if isinstance(column.dtype, pl.Datetime):
        per_day = _PER_DAY[column.dtype.time_unit]
        # Nanoseconds in 64 bits do not cover these years.
        first, last = max(_FIRST_DAY * per_day, -(2**63)), min((_LAST_DAY + 1) * per_day, 2**63) - 1
    else:
        first, last = _FIRST_DAY, _LAST_DAY
    return column.to_physical().is_between(first, last).fill_null(value=True)


def _check_times(column: pl.Series, name: str) -> None:
    """Refuse times, at any depth of the column, that Python and therefore a line cannot represent."""
    dtype = column.dtype
    if isinstance(dtype, pl.List):
        _check_times(column.explode(empty_as_null=False), name)
    elif isinstance(dtype, pl.Struct):
        for field in column.struct.unnest().get_columns():
            _check_times(field, f"{name}.{field.name}")
    elif isinstance(dtype, pl.Date | pl.Datetime) and not (usual := are_times_usual(column)).all():
        unusual = column.to_physical().filter(~usual)
        raise refuse(
            "LOG_RECORD",
            rule="times in a JSON record must be between years 1 and 9999",
            got=f"got {unusual[0]} in `{name}`, a {dtype}",
            remedy="check the unit of that column, or filter out these rows",
        )


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal) and Decimal(repr(float(value))) == value:
        return float(value)
    raise _NotJsonError(value)
