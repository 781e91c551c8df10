"""Every store, real and behind a gate, filled with the same rows: what the contract of lookups is tried on."""

from __future__ import annotations

import json
import socket
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import polars as pl

import slackwater as sw
from slackwater.connectors.lookup import Lookup
from slackwater.connectors.postgres.server import LocalServer
from slackwater.engine.enrichment.cached_lookups import FoundAnswers, StepLookups
from slackwater.engine.enrichment.stats import LookupStats
from slackwater.plan.lookup import look_up
from tests.connectors.gate import Gate
from tests.connectors.lookup_service import Service
from tests.connectors.redis.servers import RedisServer, redis_program

OUTPUT: Final = "name string, visits long, score double, member boolean, since timestamp, born date, code binary"
Row = dict[str, Any]


def row(number: int) -> Row:
    """Return the values of a key, as JSON has them."""
    return {
        "name": f'name {number} “ü”, "quoted"\n',
        "visits": (1 << 53) + number,
        "score": number / 3,
        "member": number % 2 == 0,
        "since": f"2026-03-01T12:00:{number % 60:02d}.123456Z",
        "born": "1815-12-10",
        "code": "AAEC/w==",
    }


class Store(ABC):
    """A store of one kind: its lookup, and how to fill, freeze and stop it."""

    kind: str
    batches: bool = True
    gate: Gate

    @abstractmethod
    def lookup(self) -> Lookup: ...

    @abstractmethod
    def put(self, rows: dict[str, Row]) -> None: ...

    @abstractmethod
    def spoil(self, key: str) -> None:
        """Give a key something that is not a whole number for `visits`."""

    def stop(self) -> None:
        self.gate.shut()


class RedisStore(Store):
    def __init__(self, folder: Path, values: Any) -> None:  # noqa: ANN401  one of the three
        program = redis_program()
        assert program is not None
        self.values = values
        self.server = RedisServer(program=program, home=folder)
        self.server.start()
        self.gate = Gate(connect=lambda: socket.create_connection(("127.0.0.1", self.server.port))).start()

    def lookup(self) -> Lookup:
        return sw.lookups.redis(f"redis://127.0.0.1:{self.gate.port}/0", prefix="user", values=self.values)

    def put(self, rows: dict[str, Row]) -> None:
        with self.server.client() as client:
            pipeline = client.pipeline()
            for key, values in rows.items():
                if self.values == "hash":
                    pipeline.hset(f"user:{key}", mapping={name: _text(value) for name, value in values.items()})
                else:
                    pipeline.set(f"user:{key}", json.dumps(values))
            pipeline.execute()

    def spoil(self, key: str) -> None:
        with self.server.client() as client:
            if self.values == "hash":
                client.hset(f"user:{key}", "visits", "many")
            else:
                client.set(f"user:{key}", '{"visits": "many"}')

    def stop(self) -> None:
        super().stop()
        self.server.kill()


class PostgresStore(Store):
    _types: Final = (
        "key text PRIMARY KEY, name text, visits bigint, score double precision, member boolean, "
        "since timestamptz, born date, code bytea"
    )

    def __init__(self) -> None:
        self.closing = ExitStack()
        folder = self.closing.enter_context(tempfile.TemporaryDirectory(prefix="slackwater-postgres-"))
        self.server = LocalServer(folder=Path(folder) / "data").start()
        self.gate = Gate(connect=self._connect).start()
        with self.server.connect() as admin:
            admin.execute(f"CREATE TABLE users ({self._types})".encode())

    def _connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        [path] = (self.server.folder).glob(".s.PGSQL.*[0-9]")
        made.connect(str(path))
        return made

    def lookup(self) -> Lookup:
        return sw.lookups.postgres(f"postgresql://postgres@127.0.0.1:{self.gate.port}/postgres", "users", key="key")

    def sql(self, statement: str) -> None:
        with self.server.connect() as admin:
            admin.execute(statement.encode())

    def put(self, rows: dict[str, Row]) -> None:
        insert = (
            b"INSERT INTO users SELECT %s, %s, %s, %s, %s, %s::timestamptz, %s::date, decode(%s, 'base64') "
            b"ON CONFLICT (key) DO NOTHING"
        )
        with self.server.connect() as admin, admin.cursor() as cursor:
            cursor.executemany(insert, [(key, *values.values()) for key, values in rows.items()])

    def spoil(self, key: str) -> None:
        self.sql("ALTER TABLE users ALTER visits TYPE text")
        self.sql(f"UPDATE users SET visits = 'many' WHERE key = '{key}'")  # noqa: S608  the test's own

    def stop(self) -> None:
        super().stop()
        self.server.stop()
        self.closing.close()


class HttpStore(Store):
    def __init__(self, *, by_key: bool) -> None:
        self.batches = not by_key
        self.service = Service().start()
        self.gate = Gate(connect=lambda: socket.create_connection(("127.0.0.1", self.service.port))).start()

    def lookup(self) -> Lookup:
        by_key = "" if self.batches else "/{key}"
        return sw.lookups.http(f"http://127.0.0.1:{self.gate.port}/users{by_key}")

    def put(self, rows: dict[str, Row]) -> None:
        self.service.rows.update(rows)

    def spoil(self, key: str) -> None:
        self.service.rows[key] = {"visits": "many"}

    def stop(self) -> None:
        super().stop()
        self.service.stop()


KINDS: Final[dict[str, Callable[[Path], Store]]] = {
    "redis": lambda folder: RedisStore(folder / "redis", "hash"),
    "redis, json": lambda folder: RedisStore(folder / "redis", "json"),
    "postgres": lambda _: PostgresStore(),
    "http": lambda _: HttpStore(by_key=False),
    "http, by key": lambda _: HttpStore(by_key=True),
}


def at_work(lookup: Lookup, output: str = OUTPUT, key_type: pl.DataType | None = None, **options: Any) -> StepLookups:  # noqa: ANN401  those of `.lookup`
    """Return the lookups of a step that asks `lookup`."""
    given: dict[str, Any] = {
        "concurrency": 100,
        "timeout": "2s",
        "retries": 0,
        "cache": None,
        "missing": "null",
        "on_error": "null",
        "name": None,
        **options,
    }
    op = look_up(lookup, stream="orders", key="user", output=output, **given)
    return StepLookups(op, "orders.lookup", key_type or pl.String())


def ask(step: StepLookups, *keys: Any, now_ms: int = 0, stats: LookupStats | None = None) -> FoundAnswers:  # noqa: ANN401  as Polars has them
    """Ask for keys once."""
    asked = pl.Series(list(keys), dtype=step._key_type)
    return step.answers(asked, now_ms, LookupStats() if stats is None else stats, patience_s=0.0, sleep=_never)


def _never(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
