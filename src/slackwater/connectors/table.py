"""Tables: small, the same for all rows of a batch, and reread from time to time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import polars as pl

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import RunError, listed, near_miss, refuse
from slackwater.base.folders import local_folder
from slackwater.base.secrets import Secret
from slackwater.connectors.delta.table import delta_schema
from slackwater.connectors.files.table import csv_schema, parquet_schema
from slackwater.connectors.postgres.connection import check_url, shown_server
from slackwater.connectors.postgres.table import query_schema
from slackwater.connectors.sink import Unavailable
from slackwater.formats.schemas import SchemaSpec, as_schema

Kind = Literal["parquet", "csv", "delta", "postgres"]
_POSTGRES: Final = ("postgresql://", "postgres://")


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A table as users define it: its location, its columns, and how often it is read."""

    kind: Kind
    place: str
    query: str | None
    schema: pl.Schema
    """The columns at the time the pipeline was built; it is an error if they change later."""
    refresh_ms: int | None
    password: Secret | None

    def __str__(self) -> str:
        if self.kind == "postgres":
            return f"postgres {shown_server(self.place)} ({self.query})"
        return f"{self.kind} {self.place}"


def table(
    place: str | os.PathLike[str],
    *,
    query: str | None = None,
    refresh: Duration | None = None,
    schema: SchemaSpec | None = None,
    password: Secret | None = None,
) -> Table:
    """Describe a small table: `table("rates.parquet", refresh="5m")`.

    `place` is a Parquet file, a CSV file with a header line (which needs `schema`), the folder of a Delta table, or the
    URL of a Postgres server with a `query`. The columns are read now. The rows are read when a job starts, and again
    every `refresh`; without it, only when a job starts.
    """
    if password is not None and not isinstance(password, Secret):
        raise refuse("SECRET_EXPECTED", what="password")
    where = str(place) if isinstance(place, str | os.PathLike) else ""
    kind = _kind(where, place)
    if (kind == "postgres") is (query is None) or not isinstance(query, str | None) or query == "":
        raise refuse("TABLE_QUERY", got=repr(query), place=place if kind != "postgres" else shown_server(where))
    if kind == "csv" and schema is None:
        raise refuse("TABLE_SCHEMA", place=place)
    where = check_url(where) if kind == "postgres" else local_folder(where, what="a table")
    declared = None if schema is None else as_schema(schema)
    if kind == "postgres":
        assert query is not None
        query = query.strip().rstrip(";")
    try:
        found = _read_schema(kind, where, query, declared, password)
    except (Unavailable, OSError) as error:
        why = str(error) if isinstance(error, Unavailable) else (error.strerror or str(error))
        raise refuse("TABLE_MISSING", place=_shown_place(kind, where), why=why) from error
    except RunError as error:
        raise refuse("TABLE_MISSING", place=_shown_place(kind, where), why=error.message) from error
    return Table(
        kind=kind,
        place=where,
        query=query,
        schema=found,
        refresh_ms=None if refresh is None else duration_ms(refresh, what="`refresh` of a table"),
        password=password,
    )


def _kind(where: str, given: object) -> Kind:
    if where.startswith(_POSTGRES):
        return "postgres"
    suffix = Path(where).suffix.lower()
    if suffix == ".parquet" and not Path(where).is_dir():
        return "parquet"
    if suffix == ".csv":
        return "csv"
    if where and "://" not in where.removeprefix("file://") and (not suffix or Path(where).is_dir()):
        return "delta"
    raise refuse("TABLE_KIND", got=repr(given))


def _read_schema(
    kind: Kind, where: str, query: str | None, declared: pl.Schema | None, password: Secret | None
) -> pl.Schema:
    """Return the columns of a table: the declared ones, after checking that it has them."""
    match kind:
        case "parquet":
            found = parquet_schema(where)
        case "csv":
            assert declared is not None
            found = csv_schema(where, declared)
        case "delta":
            found = delta_schema(where)
        case "postgres":
            assert query is not None
            found = query_schema(where, query, password)
    if declared is None:
        return found
    for name, dtype in declared.items():
        if name not in found:
            hint = near_miss(name, found)
            raise refuse(
                "TABLE_COLUMN", place=_shown_place(kind, where), name=name, known=listed(found, near=name), hint=hint
            )
        if found[name] != dtype:
            got = f"{found[name]} in `{name}`"
            raise refuse("TABLE_COLUMN_TYPE", place=_shown_place(kind, where), got=got, declared=dtype)
    return declared


def _shown_place(kind: Kind, where: str) -> str:
    return shown_server(where) if kind == "postgres" else where
