"""The browser that the page is tried in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.browser import Tab, browser, found
from tests.conftest import Needs


@pytest.fixture(scope="module")
def tabs(needs: Needs) -> Iterator[Callable[[], Tab]]:
    program = found()
    needs(program, "the page is tried in Chromium")
    with browser(str(program)) as opened:
        yield opened


@pytest.fixture
def tab(tabs: Callable[[], Tab]) -> Iterator[Tab]:
    made = tabs()
    made.resize(1200, 900)
    yield made
    assert made.trouble == []
