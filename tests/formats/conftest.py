"""A schema registry for every test about one; no test waits long before it tries again."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from slackwater.base.backoff import Backoff
from tests.formats.registry_server import RegistryServer, running_registry


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    client = importlib.import_module("slackwater.formats.registry")
    monkeypatch.setattr(client, "_BACKOFF", Backoff(first_s=0.0, longest_s=0.0))


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with running_registry() as running:
        yield running
