"""A real broker for the tests about Kafka: one a worker, on a free port, gone when the tests are."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from slackwater.connectors.kafka import broker
from tests.conftest import Needs
from tests.connectors.kafka.topics import Topics


@pytest.fixture(scope="session")
def kafka_parts(needs: Needs) -> None:
    """Ask for what a broker needs."""
    needs(shutil.which("java"), "a broker needs Java 17 or newer (see scripts/preflight java)")
    needs(shutil.which("mvn"), "the broker's jars are fetched by Maven")


@pytest.fixture(scope="session")
def topics(tmp_path_factory: pytest.TempPathFactory, kafka_parts: None) -> Iterator[Topics]:
    """Give the worker's broker, as a place to make topics in."""
    home = tmp_path_factory.mktemp("kafka")
    started = broker.up(home, port=broker.free_port(), heap_mb=256)
    yield Topics(servers=started.servers)
    broker.down(home)
