"""How Debezium encodes a row's columns in JSON, determined by schema, value or the user's choice.

JSON has no times, decimals or bytes, so connectors write them as numbers and strings. The schema that may come with a
record says how; without one, a string can be distinguished from a number, but the unit of a number is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl

from slackwater.formats.json.patterns import MAX_FIELDS
from slackwater.formats.json.values import JsonObject
from slackwater.formats.schemas import whole_type

Kind = Literal[
    "as_json",
    "any_unit",
    "base64",
    "days",
    "decimal_bytes",
    "decimal_scaled",
    "decimal_text",
    "micros",
    "millis",
    "nanos",
    "no_unit",
]
Times = Literal["auto", "micros", "millis", "nanos"]
Decimals = Literal["precise", "string", "double"]

UNITS: Final[dict[str | None, Kind]] = {
    None: "no_unit",
    "auto": "any_unit",
    "micros": "micros",
    "millis": "millis",
    "nanos": "nanos",
}
DECIMALS: Final[dict[str, Kind]] = {"precise": "decimal_bytes", "string": "decimal_text", "double": "as_json"}

_TIMES: Final[dict[str, Kind]] = {
    "io.debezium.time.MicroTimestamp": "micros",
    "io.debezium.time.NanoTimestamp": "nanos",
    "io.debezium.time.Timestamp": "millis",
    "org.apache.kafka.connect.data.Timestamp": "millis",
}
_DAYS: Final = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
_SCALED: Final = "io.debezium.data.VariableScaleDecimal"
_INTEGERS: Final = ("int8", "int16", "int32", "int64")
_SCALED_TYPE: Final = pl.Struct({"scale": pl.Int64(), "value": pl.String()})
_WIRE: Final[dict[Kind, pl.DataType]] = {
    "any_unit": pl.Int64(),
    "base64": pl.String(),
    "days": pl.Int64(),
    "decimal_bytes": pl.String(),
    "decimal_scaled": _SCALED_TYPE,
    "decimal_text": pl.String(),
    "micros": pl.Int64(),
    "millis": pl.Int64(),
    "nanos": pl.Int64(),
    "no_unit": pl.Int64(),
}
WRITTEN_AS: Final[dict[Kind, str]] = {
    "any_unit": "a number",
    "base64": "base64",
    "days": "a number of days",
    "decimal_bytes": "base64 of its digits",
    "decimal_scaled": "a scale and base64 of its digits",
    "decimal_text": "a string",
    "micros": "a number of microseconds",
    "millis": "a number of milliseconds",
    "nanos": "a number of nanoseconds",
    "no_unit": "a number",
}
"""The names of the encodings in messages."""
_SOURCE: Final[dict[str, pl.DataType]] = {
    "ts_ms": pl.Int64(),
    "snapshot": pl.String(),
    "db": pl.String(),
    "schema": pl.String(),
    "table": pl.String(),
    "collection": pl.String(),
    "lsn": pl.Int64(),
    "scn": pl.String(),
    "sequence": pl.String(),
    "file": pl.String(),
    "pos": pl.Int64(),
}
"""The fields of `source` that are read, with the types that most connectors write."""
_SEEN: Final[dict[type, pl.DataType]] = {bool: pl.Boolean(), int: pl.Int64(), str: pl.String()}


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How a column is encoded; `scale` is that of its decimals, None for the declared scale."""

    kind: Kind
    scale: int | None = None


AS_JSON: Final = Encoding(kind="as_json")


@dataclass(frozen=True, kw_only=True)
class RecordEncoding:
    """How to read records of one kind: the encodings of the row's columns, and the types of `source`'s fields."""

    columns: tuple[Encoding, ...]
    source: tuple[tuple[str, pl.DataType], ...]

    @property
    def is_whole(self) -> bool:
        """Whether all of `source` is read: only such a reading is reused for other records without a schema."""
        return len(self.source) == len(_SOURCE)

    def envelope(self, rows: pl.Schema) -> pl.Schema:
        """Return the envelope's columns with their types in JSON."""
        row = pl.Struct({name: dtype for name, dtype, _ in self.written(rows)})
        return pl.Schema(
            {
                "before": row,
                "after": row,
                "source": pl.Struct(dict(self.source)),
                "op": pl.String(),
                "ts_ms": pl.Int64(),
                "transaction": pl.Struct({"id": pl.String()}),
                "ddl": pl.String(),
            }
        )

    def parts(self, rows: pl.Schema) -> list[pl.Schema]:
        """Return the envelope's columns, split if there are too many of them to be read in bulk together."""
        whole = self.envelope(rows)
        if 2 * sum(map(_leaves, rows.values())) + len(self.source) + len(whole) - 3 <= MAX_FIELDS:
            return [whole]
        rest = {name: dtype for name, dtype in whole.items() if name != "before"}
        return [pl.Schema({"before": whole["before"]}), pl.Schema(rest)]

    def written(self, rows: pl.Schema) -> Iterator[tuple[str, pl.DataType, Encoding]]:
        """Yield the name, type in JSON and encoding of each of the row's columns."""
        for (name, dtype), encoding in zip(rows.items(), self.columns, strict=True):
            yield name, _WIRE.get(encoding.kind, dtype), encoding


@dataclass(frozen=True, kw_only=True)
class Encodings:
    """Finds the reading of records of one declared row."""

    rows: pl.Schema
    times: Times | None
    decimals: Decimals

    def by_schema(self, schema: object) -> RecordEncoding:
        """Return the reading of records with this Connect schema; details it does not specify are as without one."""
        envelope = _fields(schema)
        row = _fields(envelope.get("after")) or _fields(envelope.get("before"))
        columns = tuple(
            self._described(dtype, row[name]) if name in row else self._usual(dtype)
            for name, dtype in self.rows.items()
        )
        types = {name: _connect_type(field.get("type")) for name, field in _fields(envelope.get("source")).items()}
        return RecordEncoding(columns=columns, source=_source(types))

    def by_values(self, record: object) -> RecordEncoding:
        """Return the reading of a parsed record without a schema, by whether its values are numbers or strings."""
        envelope = _members(record)
        after, before = _members(envelope.get("after")), _members(envelope.get("before"))
        columns = []
        for name, dtype in self.rows.items():
            value = after.get(name)
            is_text = type(before.get(name) if value is None else value) is str
            as_text = is_text and isinstance(dtype, pl.Date | pl.Datetime)
            columns.append(AS_JSON if as_text else self._usual(dtype))
        values = _members(envelope.get("source")).items()
        types = {name: _seen_type(value) for name, value in values if value is not None}
        return RecordEncoding(columns=tuple(columns), source=_source(types))

    def _usual(self, dtype: pl.DataType) -> Encoding:
        """Return the encoding of a column of which only the declared type is known."""
        if isinstance(dtype, pl.Datetime):
            return Encoding(kind=UNITS[self.times])
        if isinstance(dtype, pl.Date):
            return Encoding(kind="days")
        if isinstance(dtype, pl.Decimal):
            return Encoding(kind=DECIMALS[self.decimals])
        return Encoding(kind="base64") if isinstance(dtype, pl.Binary) else AS_JSON

    def _described(self, dtype: pl.DataType, field: dict[str, Any]) -> Encoding:
        """Return the encoding given by a field's schema; one that cannot be read as `dtype` fails later."""
        kind, name = field.get("type"), field.get("name")
        if isinstance(dtype, pl.Datetime):
            if isinstance(name, str) and name in _TIMES:
                return Encoding(kind=_TIMES[name])
            return self._usual(dtype) if kind in _INTEGERS and name is None else AS_JSON
        if isinstance(dtype, pl.Date):
            return self._usual(dtype) if kind in _INTEGERS and name in (None, *_DAYS) else AS_JSON
        if isinstance(dtype, pl.Decimal):
            return self._decimal(field)
        return self._usual(dtype)

    def _decimal(self, field: dict[str, Any]) -> Encoding:
        if field.get("name") == _SCALED:
            return Encoding(kind="decimal_scaled")
        if field.get("type") == "bytes":
            return Encoding(kind="decimal_bytes", scale=_scale(field.get("parameters")))
        return Encoding(kind="decimal_text") if field.get("type") == "string" else AS_JSON


def _leaves(dtype: pl.DataType) -> int:
    if isinstance(dtype, pl.Struct):
        return sum(_leaves(whole_type(field.dtype)) for field in dtype.fields)
    return _leaves(whole_type(dtype.inner)) if isinstance(dtype, pl.List) else 1


def _source(types: dict[str, pl.DataType | None]) -> tuple[tuple[str, pl.DataType], ...]:
    """Return the types of `source`'s fields; fields without a simple type are left out."""
    found = {name: types.get(name, usual) for name, usual in _SOURCE.items()}
    found["ts_ms"] = found["ts_ms"] or _SOURCE["ts_ms"]
    return tuple((name, dtype) for name, dtype in found.items() if dtype is not None)


def _connect_type(kind: object) -> pl.DataType | None:
    if kind in _INTEGERS:
        return pl.Int64()
    return {"boolean": pl.Boolean(), "string": pl.String()}.get(str(kind))


def _seen_type(value: object) -> pl.DataType | None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return _SEEN.get(type(value))


def _scale(parameters: object) -> int | None:
    scale = str(parameters.get("scale")) if isinstance(parameters, dict) else ""
    digits = scale.removeprefix("-")
    return int(scale) if digits.isascii() and digits.isdigit() and len(digits) <= len("999") else None


def _fields(schema: object) -> dict[str, dict[str, Any]]:
    """Return a Connect schema's fields by name; empty for anything else."""
    return dict(_named(schema.get("fields"))) if isinstance(schema, dict) else {}


def _named(fields: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict) and isinstance(field.get("field"), str):
            yield field["field"], field


def _members(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, JsonObject) else {}
