from __future__ import annotations

from tests.docs.checker_page import PAGE, page


def test_page_of_the_checker_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.docs.checker_page`"
