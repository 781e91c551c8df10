"""The target table: created if requested, and checked against the rows before the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.errors import fault, near_miss
from slackwater.connectors.postgres.names import TableName, quoted, quoted_list
from slackwater.connectors.postgres.sink.column_types import TableColumn, holds, postgres_type
from slackwater.connectors.postgres.sink.csv_rows import CsvField

if TYPE_CHECKING:
    import psycopg

_KINDS: Final = {"r": "table", "p": "table", "v": "view", "m": "materialised view", "f": "foreign table"}
_RELATION: Final = b"""
SELECT relation.oid, relation.relkind::text FROM pg_class relation JOIN pg_namespace space ON space.oid = relnamespace
WHERE nspname = %s AND relname = %s AND relkind IN ('r', 'p', 'v', 'm', 'f')
"""
# The fields of a `Column`, in order.
_COLUMNS: Final = b"""
SELECT attname, format_type(atttypid, atttypmod), base.typname, base.typcategory::text,
       CASE WHEN own.typtype = 'd' THEN own.typtypmod ELSE atttypmod END,
       attnotnull OR own.typnotnull,
       atthasdef OR attidentity <> '' OR own.typdefault IS NOT NULL,
       attgenerated <> '' OR attidentity = 'a',
       attnum
FROM pg_attribute
JOIN pg_type own ON own.oid = atttypid
JOIN pg_type base ON base.oid = CASE WHEN own.typtype = 'd' THEN own.typbasetype ELSE own.oid END
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""
_UNIQUE: Final = b"""
SELECT (indkey::int2[])[0:indnkeyatts - 1] FROM pg_index
WHERE indrelid = %s AND indisunique AND indisvalid AND indimmediate AND indpred IS NULL AND indexprs IS NULL
"""
_FILL: Final = 70
"""Percent of a page that inserts fill: an update that finds room on the same page leaves the index alone."""


@dataclass(frozen=True, kw_only=True)
class TargetTable:
    """A table as found on the server."""

    name: TableName
    oid: int
    kind: str
    columns: dict[str, TableColumn]
    unique: tuple[frozenset[int], ...]
    """The columns of each unique index, by column number."""

    @classmethod
    def found(cls, connection: psycopg.Connection[Any], name: TableName) -> TargetTable | None:
        """Return the table with that name; None if it does not exist."""
        relation = connection.execute(_RELATION, (name.schema, name.table)).fetchone()
        if relation is None:
            return None
        oid, kind = relation
        facts = [field.name for field in dataclass_fields(TableColumn)]
        columns = [TableColumn(**dict(zip(facts, row, strict=True))) for row in connection.execute(_COLUMNS, (oid,))]
        unique = tuple(frozenset(numbers) for (numbers,) in connection.execute(_UNIQUE, (oid,)))
        return cls(
            name=name, oid=oid, kind=_KINDS[kind], columns={column.name: column for column in columns}, unique=unique
        )

    def check(self, fields: Sequence[CsvField], keys: Sequence[str]) -> None:
        """Check that the table can take the rows; one error lists all problems."""
        problems = [] if self.kind == "table" else [f"it is a {self.kind}"]
        for field in fields:
            problems += self._problems(field, is_key=field.name in keys)
        given = {field.name for field in fields}
        problems += [
            f"column `{column.name}` is NOT NULL, has no default, and gets no value"
            for column in self.columns.values()
            if column.is_not_null and not column.has_default and column.name not in given
        ]
        index = f"CREATE UNIQUE INDEX ON {self.name.sql} ({quoted_list(keys)})"
        lacks_index = self.kind == "table" and not self._is_unique(keys)
        if problems:
            problems += [f"it has no unique index on exactly {', '.join(keys)} ({index})"] if lacks_index else []
            raise fault("POSTGRES_TABLE_UNFIT", table=self.name, problems="; ".join(problems))
        if lacks_index:
            raise fault("POSTGRES_NOT_UNIQUE", table=self.name, keys=", ".join(keys), sql=index)

    def _is_unique(self, keys: Sequence[str]) -> bool:
        """Return whether a unique index covers exactly the keys; always true without keys."""
        numbers = [self.columns[key].number for key in keys if key in self.columns]
        return not keys or (len(numbers) == len(keys) and frozenset(numbers) in self.unique)

    def _problems(self, field: CsvField, *, is_key: bool) -> list[str]:
        column = self.columns.get(field.name)
        needed = postgres_type(field.dtype)
        if column is None:
            hint = near_miss(field.name, self.columns)
            return [f"column `{field.name}` ({needed}) is missing{hint}"]
        problems = []
        if not holds(column, field.dtype):
            problems.append(f"column `{field.name}` is {column.type}, and {field.dtype} needs {needed}")
        if column.is_generated:
            problems.append(f"column `{field.name}` is generated always")
        if is_key and not column.is_not_null:
            sql = f"ALTER TABLE {self.name.sql} ALTER COLUMN {quoted(field.name)} SET NOT NULL"
            problems.append(f"key column `{field.name}` may be null, and null equals no other null ({sql})")
        return problems


def table_ddl(name: TableName, fields: Sequence[CsvField], keys: Sequence[str]) -> str:
    """Return the statement that creates a table for the rows."""
    columns = [
        f"{quoted(field.name)} {postgres_type(field.dtype)}{' NOT NULL' if field.name in keys else ''}"
        for field in fields
    ]
    primary = [f"PRIMARY KEY ({quoted_list(keys)})"] if keys else []
    room = f" WITH (fillfactor = {_FILL})" if keys else ""
    return f"CREATE TABLE IF NOT EXISTS {name.sql} ({', '.join([*columns, *primary])}){room}"
