"""Checks before the first batch: the table exists and fits, the ledger exists, and the user may write to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.errors import fault
from slackwater.connectors.postgres.names import TableName, quoted
from slackwater.connectors.postgres.sink.csv_rows import CsvField
from slackwater.connectors.postgres.sink.ledger import ledger_ddl, ledger_of
from slackwater.connectors.postgres.sink.tables import TargetTable, table_ddl

if TYPE_CHECKING:
    import psycopg

_ONE_AT_A_TIME: Final = b"SELECT pg_advisory_xact_lock(hashtextextended('slackwater', 0))"
"""Two jobs that create the same table at the same time would conflict, even with IF NOT EXISTS."""
_WHERE: Final = b"""
SELECT current_user, current_database(), has_database_privilege(current_database(), 'TEMPORARY')
"""
_SCHEMA: Final = b"""
SELECT has_schema_privilege(oid, 'USAGE'), has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %s
"""
_LACKING: Final = b"""
SELECT privilege FROM unnest(%s::text[]) privilege
WHERE NOT has_table_privilege(%s::oid, privilege)
AND CASE WHEN privilege = 'DELETE' THEN true
    ELSE EXISTS (SELECT FROM unnest(%s::text[]) col WHERE NOT has_column_privilege(%s::oid, col, privilege)) END
"""
_TO_APPEND: Final = ("INSERT",)
_TO_UPSERT: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
_TO_LEDGER: Final = ("SELECT", "INSERT", "UPDATE")


@dataclass(kw_only=True)
class TablePreparation:
    """The checks and creations at a start, in one transaction."""

    connection: psycopg.Connection[Any]
    target: TableName
    fields: Sequence[CsvField]
    keys: Sequence[str]
    may_create: bool
    has_ledger: bool
    delivered_before: bool
    """Whether this run has written to the table: if so, a missing table is not recreated or replaced."""

    def run(self) -> None:
        """Check everything, and create what is missing and requested."""
        self.connection.execute(_ONE_AT_A_TIME)
        found = self.connection.execute(_WHERE).fetchone()
        assert found is not None
        user, database, may_stage = found
        schema = self.connection.execute(_SCHEMA, (self.target.schema,)).fetchone()
        if schema is None:
            name = self.target.schema
            raise fault("POSTGRES_SCHEMA_MISSING", schema=name, database=database, sql=f"CREATE SCHEMA {quoted(name)}")
        may_use, may_create = schema
        grants = [] if may_use else [f"GRANT USAGE ON SCHEMA {quoted(self.target.schema)} TO {quoted(user)}"]
        grants += [] if may_stage else [f"GRANT TEMPORARY ON DATABASE {quoted(database)} TO {quoted(user)}"]
        grants += self._make_table(user, may_create=may_create)
        grants += self._make_ledger(user, may_create=may_create) if self.has_ledger else []
        if grants:
            raise fault("POSTGRES_NO_PERMISSION", user=user, table=self.target, sql="; ".join(grants))

    def _make_table(self, user: str, *, may_create: bool) -> list[str]:
        """Check or create the table; return the GRANT statements for missing privileges."""
        table = TargetTable.found(self.connection, self.target)
        if table is None:
            if self.delivered_before:
                raise fault("POSTGRES_TABLE_GONE", table=self.target)
            sql = table_ddl(self.target, self.fields, self.keys)
            if not self.may_create:
                raise fault("POSTGRES_TABLE_MISSING", table=self.target, sql=sql)
            if not may_create:
                return [f"GRANT CREATE ON SCHEMA {quoted(self.target.schema)} TO {quoted(user)}"]
            self.connection.execute(sql.encode())
            return []
        table.check(self.fields, self.keys)
        return self._grants(table, _TO_UPSERT if self.keys else _TO_APPEND, [field.name for field in self.fields], user)

    def _make_ledger(self, user: str, *, may_create: bool) -> list[str]:
        name = ledger_of(self.target)
        ledger = TargetTable.found(self.connection, name)
        if ledger is not None:
            return self._grants(ledger, _TO_LEDGER, list(ledger.columns), user)
        if may_create:
            self.connection.execute(ledger_ddl(name).encode())
            return []
        ddl = " ".join(ledger_ddl(name).split())
        return [ddl, f"GRANT {', '.join(_TO_LEDGER)} ON {name.sql} TO {quoted(user)}"]

    def _grants(self, table: TargetTable, needed: Sequence[str], columns: list[str], user: str) -> list[str]:
        asked = (list(needed), table.oid, columns, table.oid)
        lacking = [privilege for (privilege,) in self.connection.execute(_LACKING, asked)]
        return [f"GRANT {', '.join(lacking)} ON {table.name.sql} TO {quoted(user)}"] if lacking else []
