"""Postgres as a store: a table or view with one row per key, thousands in one statement."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from slackwater.base.errors import fault, refuse
from slackwater.base.secrets import Secret
from slackwater.connectors.lookup import Answer, Lookup, LookupClient, Question, Refused, RefusedKeysError
from slackwater.connectors.postgres.connection import (
    check_url,
    connection_settings,
    not_connected,
    passing,
    psycopg_module,
    server_words,
    shown_server,
)
from slackwater.connectors.postgres.names import TableName, is_name, quoted, table_name
from slackwater.connectors.threads import CONNECT_S

if TYPE_CHECKING:
    import psycopg

_KEYS: Final = 2_000
_SESSION: Final = b"""
SELECT set_config('statement_timeout', %s, false), set_config('default_transaction_read_only', 'on', false),
       set_config('TimeZone', 'UTC', false)
"""
_KEY_TYPE: Final = b"""
SELECT format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attname = %s AND attnum > 0 AND NOT attisdropped
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PostgresLookup(Lookup):
    """A table or view on one server."""

    most_at_once = 1
    url: str
    table: TableName
    key: str | None
    password: Secret | None

    def open(self, question: Question) -> LookupClient:
        """Return a client that connects when first used."""
        psycopg_module()
        return _PostgresClient(self, question)

    def __str__(self) -> str:
        key = "" if self.key is None else f" by {self.key}"
        return f"postgres {shown_server(self.url)} (table {self.table}{key})"


class _PostgresClient(LookupClient):
    """One connection, reopened after it was lost or after an abandoned request."""

    keys_per_request = _KEYS

    def __init__(self, lookup: PostgresLookup, question: Question) -> None:
        self._lookup = lookup
        self._question = question
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._statement = b""
        self._left: set[asyncio.Task[Any]] = set()

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        # Connecting may take longer than a request: after a timeout, the next request finds the connection open.
        if self._connecting is None and (self._connection is None or self._connection.closed):
            self._connecting = asyncio.create_task(self._open())
        if self._connecting is not None:
            connecting = self._connecting
            await asyncio.wait([connecting])
            self._connecting = None
            connecting.result()
        asking = asyncio.create_task(self._fetch(keys))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            # To cancel a statement, the client library waits for the server, which may be the one not answering.
            self._abandon(asking)
            raise

    async def _open(self) -> None:
        with self._translated():
            connection = await self._connect()
            try:
                await connection.execute(_SESSION, (str(self._question.timeout_ms),))
                self._statement = await self._prepared(connection)
            except BaseException:
                await connection.close()
                raise
        self._connection = connection

    async def _fetch(self, keys: Sequence[Any]) -> dict[Any, Answer]:
        assert self._connection is not None, "made above"
        with self._translated():
            cursor = await self._connection.execute(self._statement, (_array(keys),))
            rows = await cursor.fetchall()
        found: dict[Any, Answer] = {}
        for at, text in rows:
            key = keys[at - 1]
            is_second = key in found
            found[key] = Refused(f"a key has one row; `{self._lookup.table}` has more") if is_second else text.encode()
        return found

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate the server's errors into ours."""
        module = psycopg_module()
        try:
            yield
        except module.DataError as error:
            raise RefusedKeysError(server_words(error)) from error
        except module.Error as error:
            if (away := passing(error)) is not None:
                raise away from error
            raise self._fault(server_words(error), "correct the table, its columns or their privileges") from error

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        module = psycopg_module()
        settings = connection_settings(self._lookup.url, self._lookup.password)
        seconds = max(round(CONNECT_S), -(-self._question.timeout_ms // 1_000))
        try:
            connection: psycopg.AsyncConnection[Any] = await module.AsyncConnection.connect(
                **{**settings, "connect_timeout": seconds}, autocommit=True, prepare_threshold=None
            )
        except module.OperationalError as error:
            raise not_connected(error, self._lookup.url, settings) from error
        return connection

    async def _prepared(self, connection: psycopg.AsyncConnection[Any]) -> bytes:
        """Return the statement: keys are compared in the table's own type, so that its index is used."""
        key, table = self._lookup.key or self._question.key, self._lookup.table
        found = await (await connection.execute(_KEY_TYPE, (table.sql, key))).fetchone()
        if found is None:
            remedy = "correct `table` or `key`, or create it"
            raise self._fault(f"there is no table `{table}` with a column `{key}`", remedy)
        columns = ", ".join(f"{_shown(name, dtype)} AS {quoted(name)}" for name, dtype in self._question.output.items())
        answer = f"(SELECT row_to_json(answer) FROM (SELECT {columns}) answer)::text"  # noqa: S608  names are quoted
        known = f"{table.sql} known ON known.{quoted(key)} = asked.key"
        answer, known, kind = (part.replace("%", "%%") for part in (answer, known, found[0]))
        asked = f"unnest(%s::{kind}[]) WITH ORDINALITY asked(key, at)"
        return f"SELECT asked.at::int, {answer} FROM {asked} JOIN {known}".encode()  # noqa: S608  as above

    def _fault(self, why: str, remedy: str) -> Exception:
        return fault("LOOKUP_REFUSED", lookup=self._lookup, step=self._question.step, why=why, remedy=remedy)

    def _abandon(self, asking: asyncio.Task[Any]) -> None:
        connection, self._connection = self._connection, None

        async def end() -> None:
            asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()
            await self._discard(connection)

        ending = asyncio.create_task(end())
        self._left.add(ending)
        ending.add_done_callback(self._left.discard)

    async def _discard(self, connection: psycopg.AsyncConnection[Any] | None) -> None:
        if connection is self._connection:
            self._connection = None
        if connection is not None:
            with suppress(psycopg_module().Error):
                await connection.close()

    async def close(self) -> None:
        if self._connecting is not None:
            with suppress(Exception):  # nobody waits for it
                await self._connecting
        await self._discard(self._connection)


def _shown(name: str, dtype: pl.DataType) -> str:
    column = f"known.{quoted(name)}"
    return f"translate(encode({column}, 'base64'), E'\\n', '')" if isinstance(dtype, pl.Binary) else column


def _array(keys: Sequence[Any]) -> str:
    """Return keys as an array literal; the server determines its type."""
    texts = (str(key).replace("\\", "\\\\").replace('"', '\\"') for key in keys)
    return "{" + ",".join(f'"{text}"' for text in texts) + "}"


def postgres(url: str, table: str, *, key: str | None = None, password: Secret | None = None) -> PostgresLookup:
    """Look up in a table or view: `postgres("postgresql://user@host/db", "users", key="id")`.

    `key` is the table's column, by default the one with the same name as the stream's key; it should have a unique
    index. The output columns are columns of the table. Types are converted as JSON: integers and text unchanged, times
    as ISO 8601, `jsonb` as nested columns.
    """
    if password is not None and not isinstance(password, Secret):
        raise refuse("SECRET_EXPECTED", what="password")
    if key is not None and (not isinstance(key, str) or not is_name(key)):
        rule, remedy = "the name of a column", 'write, for example, key="id"'
        facts = {"lookup": "the Postgres lookup", "what": "key", "rule": rule, "got": repr(key), "remedy": remedy}
        raise refuse("LOOKUP_OPTION", **facts)
    return PostgresLookup(url=check_url(url), table=table_name(table), key=key, password=password)
