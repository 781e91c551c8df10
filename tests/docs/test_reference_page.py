from __future__ import annotations

import slackwater as sw
from tests.docs.reference_page import PAGE, covered, page


def test_reference_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.docs.reference_page`"


def test_reference_speaks_of_every_public_name() -> None:
    assert sorted(set(sw.__all__) - covered()) == []
