"""Tables that are the result of a Postgres query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from slackwater.base.errors import fault, refuse
from slackwater.base.secrets import Secret
from slackwater.connectors.postgres.connection import connect, passing, psycopg_module, server_words, shown_server
from slackwater.connectors.postgres.names import quoted_list
from slackwater.connectors.sink import Unavailable
from slackwater.formats.ddl import TIMESTAMP

if TYPE_CHECKING:
    import psycopg

_TYPES: Final[dict[str, pl.DataType]] = {
    "bool": pl.Boolean(),
    "bytea": pl.Binary(),
    "bpchar": pl.String(),
    "date": pl.Date(),
    "float4": pl.Float32(),
    "float8": pl.Float64(),
    "int2": pl.Int16(),
    "int4": pl.Int32(),
    "int8": pl.Int64(),
    "text": pl.String(),
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMP,
    "varchar": pl.String(),
}
_TIMEOUT_MS: Final = 60_000
_SETTINGS: Final = (
    f"SELECT set_config('statement_timeout', '{_TIMEOUT_MS}', false), "
    "set_config('default_transaction_read_only', 'on', false), set_config('TimeZone', 'UTC', false)"
)


def query_schema(url: str, query: str, password: Secret | None) -> pl.Schema:
    """Return the columns of a query; rejects those with an unsupported type or a repeated name."""
    found: dict[str, pl.DataType] = {}
    with _session(url, password) as connection:
        statement = f"SELECT * FROM ({query}\n) answer LIMIT 0"  # noqa: S608  the user's own
        for name, dtype, shown in _columns(_executed(connection, statement)):
            if dtype is None or name in found:
                kind = "twice" if name in found else f"of type {shown}"
                raise refuse("TABLE_POSTGRES_TYPE", place=shown_server(url), column=name, kind=kind)
            found[name] = dtype
    return pl.Schema(found)


def read_query(url: str, query: str, password: Secret | None, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a query."""
    with _session(url, password) as connection:
        statement = f"SELECT {quoted_list(schema)} FROM ({query}\n) answer"  # noqa: S608  the user's own
        cursor = _executed(connection, statement)
        for name, dtype, shown in _columns(cursor):
            if dtype != schema[name]:
                raise fault("TABLE_CHANGED", place=shown_server(url), got=f"column `{name}` of type {shown}")
        try:
            return pl.DataFrame(cursor.fetchall(), schema=schema, orient="row")
        except (TypeError, ValueError, pl.exceptions.PolarsError, psycopg_module().Error) as error:  # infinite times
            raise Unavailable(f"a value cannot be read: {error}") from error


def _session(url: str, password: Secret | None) -> psycopg.Connection[Any]:
    connection = connect(url, password)
    try:
        _executed(connection, _SETTINGS)
    except BaseException:
        connection.close()
        raise
    return connection


def _executed(connection: psycopg.Connection[Any], statement: str) -> psycopg.Cursor[Any]:
    try:
        return connection.execute(statement.encode())
    except psycopg_module().Error as error:
        raise passing(error) or Unavailable(server_words(error)) from error


def _columns(cursor: psycopg.Cursor[Any]) -> list[tuple[str, pl.DataType | None, str]]:
    return [(column.name, _type(column), column.type_display) for column in cursor.description or ()]


def _type(column: psycopg.Column) -> pl.DataType | None:
    known = psycopg_module().adapters.types.get(column.type_code)
    name = None if known is None else known.name
    if name == "numeric":
        return None if column.precision is None else pl.Decimal(column.precision, column.scale or 0)
    return _TYPES.get(name or "")
