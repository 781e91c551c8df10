"""A receiver for every test about the HTTP sink, on a free port."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.conftest import Needs
from tests.http.receiver import Receiver


@pytest.fixture
def receiver(needs: Needs) -> Iterator[Receiver]:
    """Give a receiver of the test's own."""
    needs(importlib.util.find_spec("urllib3"), "the HTTP sink needs the package urllib3")
    receiver = Receiver()
    receiver.start()
    yield receiver
    receiver.kill()
