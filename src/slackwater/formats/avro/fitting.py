"""Decides which columns can be written as which fields, once, when the pipeline is built.

A column fits a field that can hold every value of the column's type. Times are the exception: a field in milliseconds
accepts finer times and truncates them, as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import polars as pl

from slackwater.base.errors import near_miss, refuse
from slackwater.formats.avro import outputs
from slackwater.formats.avro import schema as tree
from slackwater.formats.avro.defaults import default_bytes
from slackwater.formats.avro.derived import TEXTS, derived_type, map_value
from slackwater.formats.schemas import whole_type

_SMALL: Final = (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
_INTS: Final = (*_SMALL, pl.Int32)
_LONGS: Final = (*_INTS, pl.UInt32, pl.Int64)
_FLOATS: Final = (*_SMALL, pl.Float32)
_DOUBLES: Final = (*_INTS, pl.UInt32, pl.Float32, pl.Float64)
_LAST_INT: Final = 2**31 - 1
_PER_SECOND: Final = {
    "ms": 10**3,
    "us": 10**6,
    "ns": 10**9,
    "millis": 10**3,
    "micros": 10**6,
    "nanos": 10**9,
}


def fit_record(columns: Mapping[str, pl.DataType], record: tree.AvroRecord, path: str = "") -> outputs.Structs:
    """Return how to write columns as a record's fields; refuse columns that do not fit.

    A field without a column is written as its default. A column without a field is refused, because its values would be
    lost.
    """
    names = [field.name for field in record.fields]
    for column in columns:
        if column not in names:
            got = f"column `{tree.inside(path, column)}` without a field{near_miss(column, names)}"
            raise refuse("AVRO_COLUMNS", got=got, record=record.name.full)
    return outputs.Structs(fields=tuple((field.name, _field(columns, field, record, path)) for field in record.fields))


def _field(
    columns: Mapping[str, pl.DataType], field: tree.AvroField, record: tree.AvroRecord, path: str
) -> outputs.FieldOutput:
    within = tree.inside(path, field.name)
    if field.name in columns:
        return _fit(columns[field.name], field.type, within)
    if field.default is None:
        got = f"field `{within}`, which has no default, without a column"
        raise refuse("AVRO_COLUMNS", got=got, record=record.name.full)
    return outputs.Alike(value=default_bytes(field))


def _fit(dtype: pl.DataType, kind: tree.AvroType, path: str) -> outputs.FieldOutput:
    """Return how to write a column that may contain nulls."""
    if not isinstance(kind, tree.AvroUnion):
        return outputs.Required(path=path, inner=_values(dtype, kind, path))
    assert kind.wanted is not None, "readers' schemas with other unions are refused before"
    inner = _values(dtype, kind.wanted, path)
    if tree.NULL not in kind.branches:
        return outputs.Required(path=path, inner=inner, in_union=True)
    return outputs.Optional(null=kind.branches.index(tree.NULL), place=kind.branches.index(kind.wanted), inner=inner)


def _values(dtype: pl.DataType, kind: tree.AvroType, path: str) -> outputs.FieldOutput:
    found: outputs.FieldOutput | None = None
    match kind:
        case tree.Primitive() | tree.Fixed() if kind.logical is not None:
            found = _meaning(dtype, kind, kind.logical, path)
        case tree.Primitive():
            found = _primitive(dtype, kind.kind, path)
        case tree.Fixed(size=size) if isinstance(dtype, pl.Binary):
            found = outputs.Fixeds(path=path, size=size)
        case tree.Enum(symbols=symbols) if isinstance(dtype, TEXTS):
            found = outputs.Symbols(path=path, symbols=symbols)
        case tree.Array(items=items) if isinstance(dtype, pl.List | pl.Array):
            found = outputs.Lists(item=_fit(whole_type(dtype.inner), items, f"{path}[]"))
        case tree.AvroMap(values=values) if (value := map_value(dtype)) is not None:
            entry = (("key", outputs.TextOutput()), ("value", _fit(value, values, f"{path}[]")))
            found = outputs.Maps(path=path, item=outputs.Structs(fields=entry))
        case tree.AvroRecord() if isinstance(dtype, pl.Struct):
            found = fit_record({field.name: whole_type(field.dtype) for field in dtype.fields}, kind, path)
    if found is None:
        raise refuse("AVRO_COLUMN_TYPE", path=path, kind=kind, got=dtype, fitting=_fitting(dtype, path))
    return found


def _primitive(dtype: pl.DataType, kind: str, path: str) -> outputs.FieldOutput | None:  # noqa: PLR0911  one return per type
    match kind:
        case "boolean" if isinstance(dtype, pl.Boolean):
            return outputs.Booleans()
        case "int" if isinstance(dtype, _INTS):
            return outputs.Integers(path=path)
        case "long" if isinstance(dtype, _LONGS):
            return outputs.Integers(path=path)
        case "float" if isinstance(dtype, _FLOATS):
            return outputs.Floats(double=False)
        case "double" if isinstance(dtype, _DOUBLES):
            return outputs.Floats(double=True)
        case "bytes" if isinstance(dtype, pl.Binary):
            return outputs.TextOutput()
        case "string" if isinstance(dtype, TEXTS):
            return outputs.TextOutput()
    return None


def _meaning(
    dtype: pl.DataType, kind: tree.Primitive | tree.Fixed, logical: tree.Logical, path: str
) -> outputs.FieldOutput | None:
    """Return how to write a column as a logical type, or None if it does not fit."""
    match logical.family:
        case "decimal":
            return _decimals(dtype, logical, kind.size if isinstance(kind, tree.Fixed) else None)
        case "uuid" if isinstance(dtype, TEXTS):
            return outputs.Uuids(path=path, as_text=isinstance(kind, tree.Primitive))
        case "date" if isinstance(dtype, pl.Date):
            return outputs.Integers(path=path)
        case "time" if isinstance(dtype, _LONGS):
            # In columns, times of day are numbers in the field's unit.
            return (
                outputs.Integers(path=path, most=_LAST_INT)
                if logical.kind == "time-millis"
                else outputs.Integers(path=path)
            )
        case "timestamp" if isinstance(dtype, pl.Datetime):
            mine, wanted = _PER_SECOND[dtype.time_unit], _PER_SECOND[logical.kind.rpartition("-")[2]]
            return outputs.TimeOutput(path=path, finer=max(wanted // mine, 1), coarser=max(mine // wanted, 1))
    return None


def _decimals(dtype: pl.DataType, logical: tree.Logical, size: int | None) -> outputs.FieldOutput | None:
    # 20 digits hold the largest unsigned 64-bit number.
    given = pl.Decimal(20, 0) if isinstance(dtype, pl.UInt64) else dtype
    if not isinstance(given, pl.Decimal) or given.scale != logical.scale:
        return None
    return outputs.Decimals(dtype=given, size=size) if (given.precision or 38) <= logical.precision else None


def _fitting(dtype: pl.DataType, path: str) -> str:
    """Return the Avro type for a column in readable form; refuse a column that no type can hold."""
    found = derived_type(dtype, path, path.replace("[]", ""))
    return found if isinstance(found, str) else f"{json.dumps(found):.200}"
