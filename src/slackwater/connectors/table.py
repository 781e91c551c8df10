"""Tables: small, the same for all rows of a batch, and reread from time to time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Literal

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import RunError, listed, near_miss, refuse
from slackwater.base.expressions import unknown_column
from slackwater.base.folders import local_folder
from slackwater.base.secrets import Secret
from slackwater.base.stable_text import stable_text
from slackwater.connectors.delta.table import delta_schema
from slackwater.connectors.files.table import csv_schema, parquet_schema
from slackwater.connectors.postgres.connection import check_url, shown_server
from slackwater.connectors.postgres.table import query_schema
from slackwater.connectors.sink import Unavailable
from slackwater.formats.schemas import SchemaSpec, as_schema, shown

Kind = Literal["parquet", "csv", "delta", "postgres"]
How = Literal["left", "inner"]
_POSTGRES: Final = ("postgresql://", "postgres://")


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A table as users define it: its location, its columns, and how often it is read."""

    kind: Kind
    place: str
    query: str | None
    typed: pl.Schema
    refresh_ms: int | None
    password: Secret | None

    @property
    def schema(self) -> pl.Schema:
        """The columns at the time the pipeline was built; it is an error if they change later."""
        return self.typed

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
        typed=found,
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


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinTable:
    """Adds the columns of the table's row with the same key; all rows of a batch see the same version of the table."""

    table: Table
    left: tuple[str, ...]
    right: tuple[str, ...]
    how: How
    columns: tuple[str, ...] | None
    suffix: str | None
    name: str | None
    label = "join_table"

    @property
    def added(self) -> tuple[str, ...]:
        """The columns of the table that are added to rows."""
        return self.columns or tuple(name for name in self.table.schema if name not in self.right)

    @property
    def names(self) -> dict[str, str]:
        """The name of each added column in the joined rows."""
        return {name: f"{name}{self.suffix or ''}" for name in self.added}

    def schema_after(self, schema: pl.Schema, step: str) -> pl.Schema:
        """Return the columns of joined rows; raises if the join is not possible."""
        table = self.table.schema
        for left, right in zip(self.left, self.right, strict=True):
            if left not in schema:
                raise unknown_column(left, schema, step=step)
            self._check_column(right)
            is_key = not (schema[left].is_nested() or schema[left].is_float())
            if schema[left] != table[right] or not is_key:
                facts = {"left": left, "left_type": schema[left], "right": right, "right_type": table[right]}
                raise refuse("TABLE_KEY_TYPE", step=step, **facts)
        for name in self.added:
            self._check_column(name)
        if not self.added:
            raise refuse("TABLE_NO_COLUMNS", step=step, table=self.table)
        made = dict(schema)
        for name, new in self.names.items():
            if new in made:
                raise refuse("TABLE_COLUMN_TAKEN", step=step, column=new, table=self.table)
            made[new] = table[name]
        return pl.Schema(made)

    def _check_column(self, name: str) -> None:
        known = self.table.schema
        if name not in known:
            hint = near_miss(name, known)
            raise refuse("TABLE_COLUMN", place=self.table, name=name, known=listed(known, near=name), hint=hint)

    @property
    def rules(self) -> str:
        """Everything that the result for a row depends on, except the table's rows."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "table"}
        return f"{stable_text(own)} {self.table} {dict(self.table.schema)}"

    @property
    def written(self) -> str:
        """The join as shown by `explain`."""
        on = ", ".join(a if a == b else f"{a} = {b}" for a, b in zip(self.left, self.right, strict=True))
        again = self.table.refresh_ms
        read = "read at the start" if again is None else f"read every {render_ms(again)}"
        columns = shown({name: self.table.schema[name] for name in self.added})
        return f"{on} in {self.table}: {columns}   {self.how}, {read}"


def join_table(
    table: Table,
    *,
    stream: str,
    on: str | Sequence[str] | Mapping[str, str],
    how: How,
    columns: Sequence[str] | None,
    suffix: str | None,
    name: str | None,
) -> JoinTable:
    """Return a join of `stream` with its options checked."""
    if not isinstance(table, Table):
        raise refuse("NOT_A_TABLE", stream=stream, got=repr(table))
    pairs = dict(on) if isinstance(on, Mapping) else {each: each for each in _names(on)}
    if not pairs or not all(isinstance(each, str) and each for pair in pairs.items() for each in pair):
        raise refuse("TABLE_ON", stream=stream, got=repr(on))
    if how not in ("left", "inner"):
        raise refuse("TABLE_HOW", stream=stream, got=repr(how))
    chosen = None if columns is None else _names(columns)
    if chosen is not None and (not chosen or not all(isinstance(each, str) and each for each in chosen)):
        raise refuse("TABLE_COLUMNS", stream=stream, got=repr(columns))
    if suffix is not None and (not isinstance(suffix, str) or not suffix):
        raise refuse("TABLE_SUFFIX", stream=stream, got=repr(suffix))
    return JoinTable(
        table=table,
        left=tuple(pairs),
        right=tuple(pairs.values()),
        how=how,
        columns=chosen,
        suffix=suffix,
        name=name,
    )


def _names(given: object) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    return names if len(set(map(str, names))) == len(names) else ()
