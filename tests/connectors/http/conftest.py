"""A receiver for every test about the HTTP sink, on a free port; no test waits long before it tries again."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace

import pytest

from slackwater.connectors import delivery
from slackwater.connectors.http.sink import sending as http_sending
from tests.conftest import Needs
from tests.connectors.http.receiver import Receiver


@pytest.fixture
def receiver(needs: Needs) -> Iterator[Receiver]:
    """Give a receiver of the test's own."""
    needs(importlib.util.find_spec("urllib3"), "the HTTP sink needs the package urllib3")
    receiver = Receiver()
    receiver.start()
    yield receiver
    receiver.kill()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=0.01))
    monkeypatch.setattr(http_sending, "BACKOFF", replace(http_sending.BACKOFF, first_s=0.01))
    monkeypatch.setattr(http_sending, "REPORTED_AFTER_S", 60.0)  # a busy machine is no trouble of the receiver's
