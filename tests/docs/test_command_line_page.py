from __future__ import annotations

from tests.docs.command_line_page import PAGE, page


def test_page_of_the_command_line_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.docs.command_line_page`"


def test_page_of_the_command_line_has_commands_inside_groups_and_their_options() -> None:
    text = page()
    assert "## `slackwater dead-letters retry`" in text
    assert "| `--dry-run` |" in text
