"""Reads many JSON records at once: DuckDB reads a column of records that are known to be valid.

DuckDB is fast but lenient (it reads `"12"` as a number, rounds `1.5` and accepts `NaN`), so it is given only proven
records.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Final

import duckdb
import polars as pl
import pyarrow as pa

from slackwater.formats.json.values import is_map, map_value
from slackwater.formats.schemas import whole_type

_SQL: Final[dict[type[pl.DataType], str]] = {
    pl.Binary: "VARCHAR",  # base64, decoded afterwards
    pl.Boolean: "BOOLEAN",
    pl.Date: "DATE",
    # Not TIMESTAMP, which ignores the offset from UTC.
    pl.Datetime: "TIMESTAMPTZ",
    pl.Float32: "FLOAT",
    pl.Float64: "DOUBLE",
    pl.Int8: "TINYINT",
    pl.Int16: "SMALLINT",
    pl.Int32: "INTEGER",
    pl.Int64: "BIGINT",
    pl.String: "VARCHAR",
    pl.UInt8: "UTINYINT",
    pl.UInt16: "USMALLINT",
    pl.UInt32: "UINTEGER",
    pl.UInt64: "UBIGINT",
}
_FEWEST: Final = 64


class _Local(threading.local):
    """A connection per thread, opened on first use and not reused after a fork."""

    connection: duckdb.DuckDBPyConnection | None = None
    pid = 0


_LOCAL: Final = _Local()


class Kernel:
    """Reads proven records of one schema."""

    def __init__(self, schema: pl.Schema) -> None:
        self._schema = schema
        self._binary = [name for name, dtype in schema.items() if isinstance(dtype, pl.Binary)]
        structure = json.dumps({name: _sql_type(dtype) for name, dtype in schema.items()}, ensure_ascii=False)
        self._projection = f"unnest(from_json(line, '{structure.replace(chr(39), chr(39) * 2)}'))"

    def read(self, lines: pl.Series) -> tuple[pl.DataFrame, list[int]]:
        """Return one row per line (all null for a null line), and the indexes of lines that could not be read."""
        refused: list[int] = []
        return pl.concat(self._read(lines, 0, refused)), refused

    def _read(self, lines: pl.Series, start: int, refused: list[int]) -> list[pl.DataFrame]:
        try:
            return [self._query(lines)]
        except (duckdb.Error, pl.exceptions.PolarsError):
            # Bisect to find the line; a few lines are left to be read one by one anyway.
            if len(lines) <= _FEWEST:
                refused.extend(start + at for at in lines.is_not_null().arg_true())
                return [pl.DataFrame(schema=self._schema).clear(len(lines))]
        half = len(lines) // 2
        return [
            *self._read(lines[:half], start, refused),
            *self._read(lines[half:], start + half, refused),
        ]

    def _query(self, lines: pl.Series) -> pl.DataFrame:
        table = pa.table({"line": lines.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())})
        read = duckdb_connection().from_arrow(table).project(self._projection).to_arrow_table()
        frame = pl.DataFrame(read)
        if self._binary:
            frame = frame.with_columns(pl.col(self._binary).str.decode("base64", strict=True))
        return frame.cast(self._schema)


def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """Return this thread's connection to an in-memory DuckDB without access to files or the network."""
    if _LOCAL.connection is None or _LOCAL.pid != os.getpid():
        _LOCAL.connection = duckdb.connect(
            config={
                "threads": 1,
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            }
        )
        _LOCAL.connection.execute("SET TimeZone = 'UTC'")
        _LOCAL.connection.execute("SET produce_arrow_string_view = true")
        _LOCAL.pid = os.getpid()
    return _LOCAL.connection


def _sql_type(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Struct):
        fields = (f"{_identifier(field.name)} {_sql_type(whole_type(field.dtype))}" for field in dtype.fields)
        return f"STRUCT({', '.join(fields)})"
    if isinstance(dtype, pl.List):
        if is_map(dtype):
            return f"MAP(VARCHAR, {_sql_type(map_value(dtype))})"
        return f"{_sql_type(whole_type(dtype.inner))}[]"
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    return _SQL[type(dtype)]


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
