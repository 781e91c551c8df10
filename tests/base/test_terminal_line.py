"""The last line of a terminal: rewritten in place, and drawn again below what is printed meanwhile."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.terminal_line import RewrittenLine, above_the_line, leave_the_line
from slackwater.testing.sinks import SinkHarness

COLUMNS = 40


class Terminal(io.StringIO):
    """A terminal of 40 columns that knows what it shows."""

    def isatty(self) -> bool:
        return True

    @property
    def rows(self) -> list[str]:
        """The rows that it shows; the cursor is at the end of the last one."""
        rows, at, column = [""], 0, 0
        for part in re.findall(r"\x1b\[[AJ]|.|\n|\r", self.getvalue()):
            match part:
                case "\x1b[A":
                    at -= 1
                case "\x1b[J":
                    rows[at:] = [rows[at][:column]]
                case "\r":
                    column = 0
                case "\n":
                    at, column = at + 1, 0
                case _:
                    at, column = (at + 1, 0) if column == COLUMNS else (at, column)
                    rows += [""] * (at + 1 - len(rows))
                    rows[at] = rows[at][:column] + part + rows[at][column + 1 :]
                    column += 1
            rows += [""] * (at + 1 - len(rows))
        return [row.rstrip() for row in rows]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return Terminal()


@pytest.fixture
def line() -> RewrittenLine:
    leave_the_line()
    return RewrittenLine()


SHORT, LONG = "batch 1  5 rows", "batch 2  900 rows, of which 90 are late and 3 are dead letters"


def test_text_is_rewritten_in_place_even_if_it_takes_several_rows(terminal: Terminal, line: RewrittenLine) -> None:
    for text in (LONG, SHORT, "b", LONG, LONG):
        line.rewrite(text, terminal)
    assert terminal.rows == [LONG[:COLUMNS].rstrip(), LONG[COLUMNS:]]


@pytest.mark.parametrize("text", [SHORT, LONG, "x" * COLUMNS])
def test_what_is_printed_is_above_the_line(terminal: Terminal, line: RewrittenLine, text: str) -> None:
    line.rewrite(text, terminal)
    for word in ("one", "two"):
        with above_the_line(terminal):
            terminal.write(f"{word}\n")
    assert terminal.rows[:2] == ["one", "two"]
    assert terminal.rows[2:] == [text[at : at + COLUMNS].rstrip() for at in range(0, len(text), COLUMNS)]


def test_rows_of_the_console_are_above_the_line(terminal: Terminal, line: RewrittenLine) -> None:
    line.rewrite(SHORT, terminal)
    rows = pl.DataFrame({"n": [1, 2]})
    harness = SinkHarness(sink=sw.sinks.console(), schema=rows.schema, pipeline="p", output="sums")
    with redirect_stdout(terminal), harness as job:
        job.start()
        job.deliver(rows)
        line.rewrite("batch 2", terminal)
        job.deliver(rows)
    shown = terminal.rows
    assert [at for at, row in enumerate(shown) if row.startswith("sums, batch")] == [0, 7]
    assert shown[-1] == "batch 2"
    assert not any(SHORT in row for row in shown)


def test_what_goes_to_a_file_leaves_the_line_alone(terminal: Terminal, line: RewrittenLine) -> None:
    line.rewrite(SHORT, terminal)
    file = io.StringIO()
    with above_the_line(file):
        file.write("one\n")
    assert (file.getvalue(), terminal.getvalue()) == ("one\n", f"\r{SHORT}")


def test_line_that_is_left_stays(terminal: Terminal, line: RewrittenLine) -> None:
    line.rewrite(SHORT, terminal)
    leave_the_line()
    with above_the_line(terminal):
        terminal.write("one\n")
    line.rewrite("batch 2", terminal)
    assert terminal.rows == [SHORT, "one", "batch 2"]
