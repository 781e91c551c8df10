from __future__ import annotations

from tests.docs.errors_page import PAGE, page


def test_page_of_errors_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.docs.errors_page`"
