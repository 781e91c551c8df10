"""Databases for the tests about Postgres, on the worker's real server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.postgres.sink import PostgresSink
from slackwater.connectors.sink import SinkWriter, Slot
from tests.connectors.postgres.databases import Database


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
def database(postgres_server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Give a database of the test's own.

    A job that is to be killed is only forgotten: its connection stays open, as that of a process which hangs.
    """
    whole = PostgresSink.open
    with _made(postgres_server) as database:

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
def fuzzed(postgres_server: LocalServer) -> Iterator[Database]:
    """Give a database for many examples of one test."""
    with _made(postgres_server) as database:
        yield database
