"""Types: the Postgres type for each column type, and which table columns can hold it without loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

_PLAIN: Final[dict[type[pl.DataType], str]] = {
    pl.Binary: "bytea",
    pl.Boolean: "boolean",
    pl.Categorical: "text",
    pl.Date: "date",
    pl.Datetime: "timestamp with time zone",
    pl.Enum: "text",
    pl.Float32: "real",
    pl.Float64: "double precision",
    pl.Int8: "smallint",
    pl.Int16: "smallint",
    pl.Int32: "integer",
    pl.Int64: "bigint",
    pl.List: "jsonb",
    pl.Map: "jsonb",
    pl.String: "text",
    pl.Struct: "jsonb",
    pl.UInt8: "smallint",
    pl.UInt16: "integer",
    pl.UInt32: "bigint",
    pl.UInt64: "numeric(20,0)",
}
NESTED: Final = (pl.List, pl.Map, pl.Struct)
TEXTS: Final = (pl.String, pl.Categorical, pl.Enum)

_INTEGER_BITS: Final = {"int2": 15, "int4": 31, "int8": 63}
_BITS: Final[dict[type[pl.DataType], int]] = {
    pl.Int8: 7,
    pl.Int16: 15,
    pl.Int32: 31,
    pl.Int64: 63,
    pl.UInt8: 8,
    pl.UInt16: 16,
    pl.UInt32: 32,
    pl.UInt64: 64,
}
_HOLDS: Final[dict[type[pl.DataType], frozenset[str]]] = {
    pl.Binary: frozenset({"bytea"}),
    pl.Boolean: frozenset({"bool"}),
    pl.Date: frozenset({"date"}),
    pl.Datetime: frozenset({"timestamptz", "timestamp"}),
    pl.Float32: frozenset({"float4", "float8", "numeric"}),
    pl.Float64: frozenset({"float8", "numeric"}),
    **dict.fromkeys(NESTED, frozenset({"jsonb", "json", "text"})),
    **dict.fromkeys(TEXTS, frozenset({"uuid", "json", "jsonb"})),
}
_ANY: Final = -1
"""The modifier of a type declared without length or precision."""


@dataclass(frozen=True, kw_only=True)
class TableColumn:
    """A column of a table, as described in the server's catalogue."""

    name: str
    type: str
    """The type as written in SQL."""
    base: str
    """The server's own name for the type, below any domain."""
    category: str
    modifier: int
    is_not_null: bool
    has_default: bool
    is_generated: bool
    number: int


def postgres_type(dtype: pl.DataType) -> str | None:
    """Return the type of a column created for `dtype`; None if there is none."""
    if isinstance(dtype, pl.Decimal):
        return f"numeric({dtype.precision},{dtype.scale})"
    return _PLAIN.get(type(dtype))


def holds(column: TableColumn, dtype: pl.DataType) -> bool:
    """Return whether every value of `dtype` fits into `column` unchanged.

    A type too narrow for some value is rejected at the start, since the first such value would stop the job.
    Text is not checked: a length limit, an enumeration or a UUID is the user's own rule.
    """
    kind = type(dtype)
    if isinstance(dtype, pl.Decimal):
        return column.base == "numeric" and _has_digits(column, (dtype.precision or 38) - dtype.scale, dtype.scale)
    if kind in _BITS:
        if column.base == "numeric":
            return _has_digits(column, len(str(2 ** _BITS[kind])), 0)
        return _INTEGER_BITS.get(column.base, 0) >= _BITS[kind]
    if kind in TEXTS and column.category in ("S", "E"):
        return True
    if kind in (pl.Float32, pl.Float64, pl.Datetime) and column.modifier != _ANY:
        return False  # rounding could make two keys equal
    return column.base in _HOLDS.get(kind, frozenset())


def _has_digits(column: TableColumn, before_point: int, after_point: int) -> bool:
    if column.modifier == _ANY:
        return True
    precision, scale = (column.modifier - 4) >> 16 & 0xFFFF, (column.modifier - 4) & 0x7FF
    return scale >= after_point and precision - scale >= before_point
