"""Derives an Avro schema from columns: every field is nullable, so columns can be added later."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from slackwater.base.errors import refuse
from slackwater.formats.avro.schema import inside
from slackwater.formats.schemas import whole_type

TEXTS: Final = (pl.String, pl.Categorical, pl.Enum)

_MOST_DIGITS: Final = 38
_UNSIGNED_DIGITS: Final = 20
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final[dict[type[pl.DataType], str]] = {
    pl.Binary: "bytes",
    pl.Boolean: "boolean",
    pl.Categorical: "string",
    pl.Enum: "string",
    pl.Float32: "float",
    pl.Float64: "double",
    pl.Int8: "int",
    pl.Int16: "int",
    pl.Int32: "int",
    pl.Int64: "long",
    pl.String: "string",
    pl.UInt8: "int",
    pl.UInt16: "int",
    pl.UInt32: "long",
}
_TIMES: Final = {"ms": "timestamp-millis", "us": "timestamp-micros", "ns": "timestamp-nanos"}


def derived_schema(columns: Mapping[str, pl.DataType], subject: str) -> str:
    """Return the schema of records with these columns, as JSON, or refuse a column that Avro cannot hold.

    The record is named after the subject, as far as Avro allows. A nested record is named after its field, in a
    namespace of its own, so that names do not collide.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", subject.removesuffix("-value"))
    name = name if _NAME.fullmatch(name) else f"_{name}"
    return json.dumps(_record(columns, name, path=""), separators=(",", ":"))


def derived_type(dtype: pl.DataType, path: str, name: str) -> Any:  # noqa: ANN401  JSON
    """Return the Avro type for a column type, as JSON; `name` is the full name to give a record."""
    if isinstance(dtype, pl.Struct):
        return _record({field.name: whole_type(field.dtype) for field in dtype.fields}, name, path)
    if (value := map_value(dtype)) is not None:
        return {"type": "map", "values": _nullable(value, f"{path}[]", name)}
    if isinstance(dtype, pl.List | pl.Array):
        return {"type": "array", "items": _nullable(whole_type(dtype.inner), f"{path}[]", name)}
    known = _PLAIN.get(type(dtype)) or _meaning(dtype)
    if known is None:
        raise refuse("AVRO_NO_TYPE", path=path, got=str(dtype))
    return known


def map_value(dtype: pl.DataType) -> pl.DataType | None:
    """Return the type of a map's values, or None if the column is not a map: see `ddl.map_type`."""
    if isinstance(dtype, pl.Map):
        return whole_type(dtype.value) if isinstance(whole_type(dtype.key), TEXTS) else None
    entry = whole_type(dtype.inner) if isinstance(dtype, pl.List) else None
    if isinstance(entry, pl.Struct) and [field.name for field in entry.fields] == ["key", "value"]:
        key, value = (whole_type(field.dtype) for field in entry.fields)
        return value if isinstance(key, TEXTS) else None
    return None


def _record(columns: Mapping[str, pl.DataType], name: str, path: str) -> dict[str, Any]:
    fields = []
    for column, dtype in columns.items():
        within = inside(path, column)
        if not _NAME.fullmatch(column):
            raise refuse("AVRO_COLUMN_NAME", got=within)
        fields.append({"name": column, "type": _nullable(dtype, within, f"{name}.{column}"), "default": None})
    if not fields:
        raise refuse("AVRO_NO_TYPE", path=path, got="a struct without fields")
    space, _, simple = name.rpartition(".")
    return {"type": "record", "name": simple, **({"namespace": space} if space else {}), "fields": fields}


def _nullable(dtype: pl.DataType, path: str, name: str) -> list[Any]:
    return ["null", derived_type(dtype, path, name)]


def _meaning(dtype: pl.DataType) -> dict[str, Any] | None:
    match dtype:
        case pl.Decimal():
            return _decimal(dtype.precision or _MOST_DIGITS, dtype.scale)
        case pl.UInt64():
            return _decimal(_UNSIGNED_DIGITS, 0)
        case pl.Datetime():
            return {"type": "long", "logicalType": _TIMES[dtype.time_unit]}
        case pl.Date():
            return {"type": "int", "logicalType": "date"}
    return None


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
