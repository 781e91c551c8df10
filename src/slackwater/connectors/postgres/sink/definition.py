"""`sw.sinks.postgres(...)`: the sink as users define it, checked before any connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, Final

import polars as pl

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import fault, listed, near_miss, refuse
from slackwater.base.secrets import Secret
from slackwater.connectors.postgres.connection import check_url, connect, shown_server, transaction
from slackwater.connectors.postgres.names import TableName, is_name, table_name
from slackwater.connectors.postgres.sink.column_types import postgres_type
from slackwater.connectors.postgres.sink.csv_rows import CsvField, CsvRows
from slackwater.connectors.postgres.sink.ledger import SlotLease
from slackwater.connectors.postgres.sink.preparing import TablePreparation
from slackwater.connectors.postgres.sink.tables import TargetTable
from slackwater.connectors.postgres.sink.writer import PostgresWriter
from slackwater.connectors.sink import EVERYTHING, Change, Delivery, Sink, SinkWriter, Slot, Trial
from slackwater.connectors.sink_options import check_delivery, check_flags, check_key_values, check_result_keys
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA

_RETRACTION: Final = "is_retraction"
_NUL_OF_LETTERS: Final = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, kw_only=True, eq=False)
class PostgresSink(Sink):
    """A sink that writes to a table of a Postgres database."""

    for_retractions: ClassVar[str] = "upsert_on=[…] applies them, changelog=True keeps them as rows"
    shown_options: ClassVar[tuple[str, ...]] = ("columns", "create", "changelog", "replace_nul")
    url: str
    table: TableName
    upsert_on: tuple[str, ...]
    columns: tuple[tuple[str, str], ...] | None
    """Columns of the rows, each with its name in the table; None means all."""
    create: bool = False
    changelog: bool = False
    replace_nul: str | None
    password: Secret | None
    delivery: Delivery = "exactly_once"
    has_slots: bool = True

    @property
    def place(self) -> str:
        """The table."""
        return f"postgres {shown_server(self.url)} {self.table}"

    @property
    def name(self) -> str:
        """The table, independent of its server."""
        return f"postgres {self.table}"

    def replaced_by(self, slot: Slot) -> tuple[str, ...]:  # noqa: ARG002  the same for any rows
        """Return the key of the table's rows."""
        return self.upsert_on

    def check(self, slot: Slot) -> None:
        """Reject rows that the sink cannot write, and a key by which results would overwrite each other."""
        schema = slot.schema
        names = self._names(schema)
        for source in names:
            if source not in schema:
                hint = near_miss(source, schema)
                raise refuse("POSTGRES_COLUMN_UNKNOWN", column=source, hint=hint, known=listed(schema, near=source))
            if postgres_type(schema[source]) is None:
                raise refuse("POSTGRES_TYPE", column=source, dtype=schema[source])
            if not is_name(names[source]):
                raise refuse("POSTGRES_COLUMN_NAME", column=names[source])
        for key in self.upsert_on:
            if key not in names:
                raise refuse("POSTGRES_KEY_UNKNOWN", key=key, hint=near_miss(key, names), known=listed(names, near=key))
        check_result_keys("upsert_on", self.upsert_on, slot)

    def trial(self, slot: Slot) -> Trial:
        """Return the check for rows that Postgres cannot store."""
        rows = self._rows(slot)

        def check(frame: pl.DataFrame) -> None:
            check_key_values(frame, self.upsert_on, slot)
            rows.try_out(frame)

        return Trial(rule=f"{rows} {self.upsert_on}", check=check)

    def prepare(self, slot: Slot) -> None:
        """Check the server, the table, its columns and the user's privileges; create what is missing and requested."""
        with (
            closing(connect(self.url, self.password)) as connection,
            transaction(connection, sink=self, doing="the start"),
        ):
            TablePreparation(
                connection=connection,
                target=self.table,
                fields=self._fields(slot.schema),
                keys=list(self._keys(slot.schema).values()),
                may_create=self.create,
                has_ledger=self.delivery == "exactly_once",
                delivered_before=slot.delivered_before,
            ).run()

    def open(self, slot: Slot) -> SinkWriter:
        """Connect and take over the slot."""
        connection = connect(self.url, self.password)
        try:
            with transaction(connection, sink=self, doing="the opening"):
                lease = SlotLease.taken(connection, slot, self.table) if self.delivery == "exactly_once" else None
                table = TargetTable.found(connection, self.table)
                if table is None:
                    raise fault("POSTGRES_TABLE_GONE", table=self.table)  # noqa: TRY301  closed below
        except BaseException:
            connection.close()
            raise
        return PostgresWriter(
            connection=connection,
            table=table,
            rows=self._rows(slot),
            keys=self._keys(slot.schema),
            lease=lease,
            sink=self,
        )

    def _rows(self, slot: Slot) -> CsvRows:
        # Dead letters have nowhere else to go, so nothing may prevent writing one.
        is_forced = self.replace_nul is None and slot.schema == DEAD_LETTER_SCHEMA
        return CsvRows(fields=self._fields(slot.schema), replace_nul=_NUL_OF_LETTERS if is_forced else self.replace_nul)

    def _names(self, schema: pl.Schema) -> dict[str, str]:
        """Return the columns to write: their names in the rows, with those in the table."""
        if self.columns is not None:
            return dict(self.columns)
        # In a table with one row per key, a retraction is applied, not stored.
        return {name: name for name in schema if not (self.upsert_on and name == _RETRACTION)}

    def _fields(self, schema: pl.Schema) -> tuple[CsvField, ...]:
        names = self._names(schema)
        return tuple(CsvField(source=source, name=name, dtype=schema[source]) for source, name in names.items())

    def _keys(self, schema: pl.Schema) -> dict[str, str]:
        names = self._names(schema)
        return {key: names[key] for key in self.upsert_on}

    def __str__(self) -> str:
        how = f"one row for each {', '.join(self.upsert_on)}" if self.upsert_on else "appended"
        return f"postgres {shown_server(self.url)} table {self.table} ({how})"


def postgres(
    url: str,
    table: str,
    *,
    upsert_on: Sequence[str] | None = None,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    create: bool = False,
    changelog: bool = False,
    replace_nul: str | None = None,
    password: Secret | None = None,
    delivery: Delivery = "exactly_once",
    retry_for: Duration = "5m",
) -> PostgresSink:
    """Write to a table: `postgres("postgresql://me@db/shop", "totals", upsert_on=["user", "window_start"])`.

    With `upsert_on` the table has one row per key: a later row replaces it and a retraction deletes it. Without it,
    rows are appended, and retractions are rejected unless `changelog=True` (readers then check `is_retraction`).
    """
    check_delivery("the Postgres sink", delivery)
    check_flags("the Postgres sink", create=create, changelog=changelog)
    if password is not None and not isinstance(password, Secret):
        raise refuse("SECRET_EXPECTED", what="password")
    if replace_nul is not None and (not isinstance(replace_nul, str) or "\x00" in replace_nul):
        raise refuse("POSTGRES_REPLACE_NUL", got=repr(replace_nul))
    keys = _upsert_on(upsert_on)
    if keys and changelog:
        raise refuse("POSTGRES_CHANGELOG")
    takes: frozenset[Change] = EVERYTHING if keys or changelog else frozenset({"append", "update"})
    return PostgresSink(
        url=check_url(url),
        table=table_name(table),
        upsert_on=keys,
        columns=_columns(columns),
        create=create,
        changelog=changelog,
        replace_nul=replace_nul,
        password=password,
        takes=takes,
        delivery=delivery,
        retry_for_ms=duration_ms(retry_for, what="retry_for", least_ms=0),
    )


def _upsert_on(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise refuse("POSTGRES_UPSERT_ON", got=repr(given))
    if not all(isinstance(key, str) for key in given) or len(set(given)) < len(given):
        raise refuse("POSTGRES_UPSERT_ON", got=repr(given))
    return tuple(given)


def _columns(given: object) -> tuple[tuple[str, str], ...] | None:
    if given is None:
        return None
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping) and isinstance(given, Sequence) and not isinstance(given, str):
        pairs = [(name, name) for name in given]
    if not isinstance(pairs, list) or not pairs:
        raise refuse("POSTGRES_COLUMNS", got=repr(given))
    names = [name for pair in pairs for name in pair]
    if not all(isinstance(name, str) for name in names) or any(
        len(set(side)) < len(pairs) for side in zip(*pairs, strict=True)
    ):
        raise refuse("POSTGRES_COLUMNS", got=repr(given))
    return tuple(pairs)
