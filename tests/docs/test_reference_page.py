from __future__ import annotations

from tests.docs.reference_page import PAGE, covered, page, public


def test_reference_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.docs.reference_page`"


def test_reference_speaks_of_every_public_name() -> None:
    assert sorted(public() - covered()) == []
