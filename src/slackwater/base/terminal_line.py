"""The last line of a terminal while it is rewritten, and what is printed above it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

_LOCK: Final = threading.RLock()
_shown: list[RewrittenLine] = []
"""The line at the end of the terminal, if there is one."""


class RewrittenLine:
    """A line that is rewritten as things change, until it is left as it is and a new one begins."""

    def __init__(self) -> None:
        self._out: TextIO | None = None
        self._text = ""

    @property
    def text(self) -> str:
        """The text of the line; empty if there is none."""
        return self._text

    def rewrite(self, text: str, out: TextIO) -> None:
        """Show a text instead of the last one, or in a new line of the terminal `out`."""
        with _LOCK:
            before, self._text, self._out = self._text, text, out
            _shown[:] = [self]
            if _rows_above(before):
                out.write(_erased(before) + text)
            else:
                out.write("\r" + text.ljust(len(before)))
            out.flush()

    def leave(self) -> None:
        """Leave the line as it is, and begin a new one."""
        with _LOCK:
            if self._out is not None and self._text:
                self._out.write("\n")
                self._out.flush()
            self._text = ""
            _shown.clear()

    def erase(self) -> None:
        """Remove the line from the terminal until it is drawn again."""
        if self._out is not None:
            self._out.write(_erased(self._text))
            self._out.flush()

    def draw(self) -> None:
        """Show the line again."""
        if self._out is not None:
            self._out.write(self._text)
            self._out.flush()


@contextmanager
def above_the_line(out: TextIO) -> Iterator[None]:
    """Print to `out` in lines of their own: if it is a terminal, above the line that is being rewritten."""
    with _LOCK:
        lines = list(_shown) if out.isatty() else []
        for line in lines:
            line.erase()
        try:
            yield
            out.flush()
        finally:
            for line in lines:
                line.draw()


def leave_the_line() -> None:
    """Leave the line that is being rewritten, if there is one, and begin a new one."""
    with _LOCK:
        while _shown:
            _shown[-1].leave()


def _erased(text: str) -> str:
    """Return what erases a text that the cursor is at the end of."""
    return "\r" + "\033[A" * _rows_above(text) + "\033[J"


def _rows_above(text: str) -> int:
    """Return how many rows of the terminal a text has above its last one."""
    return max(0, len(text) - 1) // max(1, shutil.get_terminal_size().columns)
