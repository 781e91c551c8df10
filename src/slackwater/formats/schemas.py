"""Declared schemas, converted to Polars types, Spark DDL and Arrow types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl
import pyarrow as pa

from slackwater.base.errors import refuse, row_error
from slackwater.formats.ddl import TIMESTAMP, check_distinct, map_type, parse_ddl

SchemaSpec = str | pl.Schema | Mapping[str, Any]
"""A Spark DDL string, a `pl.Schema`, or a mapping of names to Polars types."""

_PLAIN: Final[dict[type[pl.DataType], tuple[str, pa.DataType]]] = {
    pl.Binary: ("binary", pa.binary()),
    pl.Boolean: ("boolean", pa.bool_()),
    pl.Categorical: ("string", pa.string()),
    pl.Date: ("date", pa.date32()),
    pl.Enum: ("string", pa.string()),
    pl.Float32: ("float", pa.float32()),
    pl.Float64: ("double", pa.float64()),
    pl.Int8: ("tinyint", pa.int8()),
    pl.Int16: ("smallint", pa.int16()),
    pl.Int32: ("int", pa.int32()),
    pl.Int64: ("bigint", pa.int64()),
    pl.String: ("string", pa.string()),
    # Spark has no unsigned types: the next wider signed one holds every value.
    pl.UInt8: ("smallint", pa.int16()),
    pl.UInt16: ("int", pa.int32()),
    pl.UInt32: ("bigint", pa.int64()),
    pl.UInt64: ("decimal(20,0)", pa.decimal128(20, 0)),
}
_MOST_NAMED: Final = 6
_UNDECLARABLE: Final = (pl.Categorical, pl.Enum)


def as_schema(spec: SchemaSpec) -> pl.Schema:
    """Return a declared schema as Polars types; refuse types that no source can produce.

    Times become `pl.Datetime("us", "UTC")` whatever their unit (a naive one is taken as UTC), and maps
    become lists of (key, value). Names that begin with `__` belong to Slackwater.
    """
    if isinstance(spec, str):
        columns = parse_ddl(spec)
    elif isinstance(spec, Mapping):
        columns = [(_text(name), _declared(name, dtype)) for name, dtype in spec.items()]
    else:
        raise refuse("BAD_SCHEMA", problem=f"{type(spec).__name__} {spec!r:.60}", remedy="write it as DDL")
    if not columns:
        raise refuse("BAD_SCHEMA", problem="no column", remedy="name at least one, as in `id string`")
    for name, _ in columns:
        if not name:
            raise refuse("BAD_SCHEMA", problem="a column without a name", remedy="name every column")
        if name.startswith("__"):
            raise refuse("RESERVED_COLUMN", name=name)
    return pl.Schema(check_distinct(columns))


def to_spark_ddl(schema: Mapping[str, pl.DataType]) -> str:
    """Return `schema` as Spark DDL, with names in backticks and types wide enough for every value."""
    return ", ".join(f"{quoted(name)} {spark_type(dtype, name)}" for name, dtype in schema.items())


def shown(schema: Mapping[str, pl.DataType]) -> str:
    """Return `schema` in readable form: unquoted names with Spark's type names."""
    return ", ".join(f"{name} {spark_type(dtype, name)}" for name, dtype in schema.items())


def short_type(dtype: pl.DataType) -> str:
    """Return a type in few characters, for people: Spark's name of it, and of a struct only its fields' names."""
    if isinstance(dtype, pl.Struct):
        names = [field.name for field in dtype.fields]
        return f"{{{', '.join(names[:_MOST_NAMED])}{', …' if len(names) > _MOST_NAMED else ''}}}"
    if isinstance(dtype, pl.List):
        return f"array<{short_type(whole_type(dtype.inner))}>"
    return spark_type(dtype)


def to_arrow(schema: Mapping[str, pl.DataType]) -> pa.Schema:
    """Return the Arrow schema that Spark expects for `to_spark_ddl(schema)`."""
    return pa.schema([pa.field(name, _arrow_type(dtype, name)) for name, dtype in schema.items()])


def check_arrow(frame: pl.DataFrame) -> None:
    """Raise if a value cannot be passed to Spark; almost free if the types are Spark's own."""
    for name in frame.columns:
        column = frame.select(name)
        try:
            column.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(to_arrow(column.schema))
        except (pa.ArrowInvalid, pl.exceptions.PanicException) as error:
            raise row_error("SPARK_VALUE", column=name, cause=str(error).strip().partition("\n")[0]) from error


def normal_type(dtype: pl.DataType) -> pl.DataType:
    """Return the declared type of a column that has type `dtype` in a file: see `as_schema`.

    Types that cannot be declared are returned unchanged.
    """
    if isinstance(dtype, pl.Datetime):
        return TIMESTAMP
    if isinstance(dtype, pl.Map):
        return map_type(normal_type(whole_type(dtype.value)))
    if isinstance(dtype, pl.List):
        return pl.List(normal_type(whole_type(dtype.inner)))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: normal_type(whole_type(field.dtype)) for field in dtype.fields})
    return pl.String() if isinstance(dtype, _UNDECLARABLE) else dtype


def _declared(name: object, given: Any) -> pl.DataType:  # noqa: ANN401  users may pass anything
    """Check one declared type of a mapping and return it normalized; `name` may be a path into nested types."""
    if isinstance(given, str):
        raise _unusable(name, repr(given), "use Polars types in a mapping, or one DDL string for all columns")
    if given is pl.Datetime:
        return TIMESTAMP
    try:
        dtype = pl.Schema({"given": given})["given"]
    except (TypeError, ValueError) as error:
        raise _unusable(name, repr(given), "use a complete Polars type, as in pl.List(pl.String)") from error
    if isinstance(dtype, pl.Map | pl.List | pl.Struct):
        _check_inner(name, dtype)
    elif isinstance(dtype, pl.Datetime) and dtype.time_zone not in {None, "UTC"}:
        raise _unusable(name, str(dtype), "times are in UTC; convert them for display")
    elif isinstance(dtype, _UNDECLARABLE):
        raise _unusable(name, str(dtype), "use pl.String")
    elif not isinstance(dtype, (*_PLAIN, pl.Datetime, pl.Decimal)):
        raise _unusable(name, str(dtype), "use a type that Spark supports")
    return normal_type(dtype)


def _check_inner(name: object, dtype: pl.Map | pl.List | pl.Struct) -> None:
    if isinstance(dtype, pl.Struct):
        fields = [(field.name, _declared(f"{name}.{field.name}", field.dtype)) for field in dtype.fields]
        if not check_distinct(fields):
            raise _unusable(name, "a struct without fields", "name its fields")
    elif isinstance(dtype, pl.List):
        _declared(f"{name}[]", dtype.inner)
    elif whole_type(dtype.key) != pl.String:
        raise _unusable(name, str(dtype), "a map's keys are strings")
    else:
        _declared(f"{name}.value", dtype.value)


def spark_type(dtype: pl.DataType, name: str = "") -> str:
    """Return Spark's name for `dtype`; `name` is the column, for the error if Spark has no such type."""
    if isinstance(dtype, pl.List):
        return f"array<{spark_type(whole_type(dtype.inner), name)}>"
    if isinstance(dtype, pl.Struct):
        fields = (f"{quoted(field.name)}:{spark_type(whole_type(field.dtype), name)}" for field in dtype.fields)
        return f"struct<{','.join(fields)}>"
    if isinstance(dtype, pl.Map):
        return spark_type(normal_type(dtype), name)
    if isinstance(dtype, pl.Decimal):
        return f"decimal({dtype.precision},{dtype.scale})"
    if isinstance(dtype, pl.Datetime):
        return "timestamp"
    return _plain(dtype, name)[0]


def _arrow_type(dtype: pl.DataType, name: str) -> pa.DataType:
    if isinstance(dtype, pl.List):
        return pa.list_(_arrow_type(whole_type(dtype.inner), name))
    if isinstance(dtype, pl.Struct):
        return pa.struct([pa.field(field.name, _arrow_type(whole_type(field.dtype), name)) for field in dtype.fields])
    if isinstance(dtype, pl.Map):
        return _arrow_type(normal_type(dtype), name)
    if isinstance(dtype, pl.Decimal):
        return pa.decimal128(dtype.precision or 38, dtype.scale)
    if isinstance(dtype, pl.Datetime):
        return pa.timestamp("us", "UTC")
    return _plain(dtype, name)[1]


def _plain(dtype: pl.DataType, name: str) -> tuple[str, pa.DataType]:
    known = _PLAIN.get(type(dtype))
    if known is None:
        raise _unusable(name, str(dtype), "cast it to a type that Spark supports")
    return known


def whole_type(dtype: Any) -> pl.DataType:  # noqa: ANN401  Polars keeps inner types as classes or as instances
    """Return `dtype` as an instance, so that `isinstance` works at every level of nesting."""
    whole: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return whole


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise refuse("BAD_SCHEMA", problem=f"{name!r} as a column's name", remedy="names are strings")
    return name


def quoted(name: str) -> str:
    """Quote a column name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _unusable(name: object, got: str, remedy: str) -> Exception:
    return refuse("BAD_SCHEMA", problem=f"type {got:.80} of `{name}`", remedy=remedy)


def fits(given: pl.DataType, wanted: pl.DataType) -> bool:  # noqa: PLR0911  one case per kind of type
    """Return whether values of one type may be converted to another; single values may still be too large for it.

    A value is never truncated, rounded or parsed to make it fit.
    """
    if given == wanted or isinstance(given, pl.Null):
        return True
    if wanted.is_integer():
        return given.is_integer()
    if wanted.is_float():
        return given.is_integer() or given.is_float()
    if isinstance(wanted, pl.Decimal):
        return given.is_integer() or (isinstance(given, pl.Decimal) and given.scale <= wanted.scale)
    if isinstance(wanted, pl.String):
        return isinstance(given, pl.Categorical | pl.Enum)
    if isinstance(wanted, pl.Datetime):
        return isinstance(given, pl.Datetime)
    if isinstance(wanted, pl.List):
        return isinstance(given, pl.List) and fits(whole_type(given.inner), whole_type(wanted.inner))
    if isinstance(wanted, pl.Struct) and isinstance(given, pl.Struct):
        theirs, mine = given.fields, wanted.fields
        return [each.name for each in theirs] == [each.name for each in mine] and all(
            fits(whole_type(one.dtype), whole_type(other.dtype)) for one, other in zip(theirs, mine, strict=True)
        )
    return False
