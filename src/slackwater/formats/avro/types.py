"""Maps Avro types to columns: which Polars type each becomes, and which cannot be a column."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.base.errors import refuse
from slackwater.formats.avro import schema as tree
from slackwater.formats.avro.columns import default_column
from slackwater.formats.avro.defaults import UnfitDefaultError
from slackwater.formats.avro.resolution import problems, resolve_schemas
from slackwater.formats.ddl import TIMESTAMP, map_type
from slackwater.formats.schemas import as_schema

_PLAIN: Final[dict[str, pl.DataType]] = {
    "boolean": pl.Boolean(),
    "bytes": pl.Binary(),
    "double": pl.Float64(),
    "float": pl.Float32(),
    "int": pl.Int32(),
    "long": pl.Int64(),
    "string": pl.String(),
}
_MEANINGS: Final[dict[str, pl.DataType]] = {
    "date": pl.Date(),
    "time": pl.Int64(),
    "timestamp": TIMESTAMP,
    "uuid": pl.String(),
}
_MOST_DIGITS: Final = 38


def columns_of(reader: tree.AvroType) -> pl.Schema:
    """Return the columns of a reader's schema; refuse a schema that cannot be read as columns."""
    if not isinstance(reader, tree.AvroRecord):
        raise _unusable(f"{reader} at the top", "declare a record; its fields become columns")
    if not reader.fields:
        raise _unusable(f"{reader} without fields", "name its fields")
    schema = as_schema({field.name: _column_type(field.type, field.name) for field in reader.fields})
    for problem in problems(resolve_schemas(reader, reader), only_always=True):
        raise _unusable(str(problem), "remove it")
    _check_defaults(reader, "")
    return schema


def _column_type(  # noqa: C901, PLR0911  one return per type
    kind: tree.AvroType, path: str
) -> pl.DataType:
    match kind:
        case tree.Primitive(logical=logical) | tree.Fixed(logical=logical) if logical is not None:
            return _meaning(logical, path)
        case tree.Primitive(kind="null"):
            raise _unusable(f"field `{path}` of type null only", "remove it, or add a type besides null")
        case tree.Primitive(kind=word):
            return _PLAIN[word]
        case tree.Fixed():
            return pl.Binary()
        case tree.Enum():
            return pl.String()
        case tree.Array(items=items):
            return pl.List(_column_type(items, f"{path}[]"))
        case tree.AvroMap(values=values):
            return map_type(_column_type(values, f"{path}[]"))
        case tree.AvroRecord(fields=fields):
            if not fields:
                raise _unusable(f"{kind} without fields in `{path}`", "remove it, or name its fields")
            return pl.Struct({field.name: _column_type(field.type, tree.inside(path, field.name)) for field in fields})
        case tree.AvroUnion():
            if kind.wanted is None:
                raise refuse("AVRO_UNION", path=path, got=", ".join(map(str, kind.branches)))
            return _column_type(kind.wanted, path)


def _meaning(logical: tree.Logical, path: str) -> pl.DataType:
    if logical.kind == "decimal":
        if logical.precision > _MOST_DIGITS:
            raise _unusable(f"{logical} in field `{path}`", f"declare at most {_MOST_DIGITS} digits")
        return pl.Decimal(logical.precision, logical.scale)
    return _MEANINGS[logical.family]


def _check_defaults(kind: tree.AvroType, path: str) -> None:
    """Refuse a default that its field cannot hold, because records of older writers would get it."""
    match kind:
        case tree.Array(items=inner) | tree.AvroMap(values=inner):
            _check_defaults(inner, f"{path}[]")
        case tree.AvroUnion(branches=branches):
            for branch in branches:
                _check_defaults(branch, path)
        case tree.AvroRecord(fields=fields):
            for field in fields:
                within = tree.inside(path, field.name)
                if field.default is not None:
                    try:
                        default_column(field, _column_type(field.type, within))
                    except UnfitDefaultError as error:
                        remedy = "correct the default: for a union, a value of one of its types"
                        raise _unusable(f"the default of field `{within}`: {error}", remedy) from None
                _check_defaults(field.type, within)


def _unusable(problem: str, remedy: str) -> Exception:
    return refuse("AVRO_SCHEMA", problem=problem, remedy=remedy)
