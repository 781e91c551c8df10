"""Call sites: where in a user's file a definition was written, so that an error can name the line.

They are stored separately, by the definitions' identity, for as long as the definitions live. A call site is not part
of its definition: fingerprints, layouts, pickles and comparisons do not include it, and a file that gains an empty line
still defines the same pipeline.
"""

from __future__ import annotations

import ast
import linecache
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType
from typing import Final, TypeVar

from slackwater.base.errors import DefinitionError

_Definition = TypeVar("_Definition")


@dataclass(frozen=True)
class CallSite:
    """A call in a user's file: its code object and the calling instruction."""

    code: CodeType
    instruction: int

    @property
    def line(self) -> int | None:
        """The line of the called name; in a chain over several lines, that is not the line where the call starts."""
        place = next(islice(self.code.co_positions(), self.instruction // 2, None))
        if None in place:
            return place[0]
        return _line_of_name(self.code.co_filename, place) or place[0]

    def __str__(self) -> str:
        return f"{self.code.co_filename}, line {self.line}"


_SITES: Final[dict[int, CallSite]] = {}
"""Call sites by the identity of their definitions."""


def remember(definition: _Definition, *, like: object = None) -> _Definition:
    """Record the line of the user's file that created `definition`, or use that of `like`; return `definition`."""
    if (site := _caller() if like is None else _SITES.get(id(like))) is not None:
        _SITES[id(definition)] = site
        weakref.finalize(definition, _SITES.pop, id(definition), None).atexit = False
    return definition


def blamed(error: DefinitionError, *definitions: object) -> DefinitionError:
    """Add the line of the first of `definitions` with a known call site to `error`, unless it has one; return it."""
    sites = (_SITES.get(id(definition)) for definition in definitions)
    site = next(filter(None, sites), None)
    if site is not None and error.where is None:
        error.where = str(site)
        error.add_note(f"defined at {site}")
    return error


@contextmanager
def blame(*definitions: object) -> Iterator[None]:
    """Make errors raised inside name the line of the first of `definitions` with a known call site."""
    try:
        yield
    except DefinitionError as error:
        blamed(error, *definitions)
        raise


def _caller() -> CallSite | None:
    """Return the innermost call outside the package; None for the command line's own pipelines, such as the demo's."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001  the cheapest way to find the caller
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("slackwater.tools.cli"):
            return None
        if module.partition(".")[0] != "slackwater":
            return CallSite(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def _line_of_name(file: str, place: tuple[int | None, ...]) -> int | None:
    """Return the line of the name called by the expression at `place`; None if the source is not available.

    Python knows it too, but not for calls with `*` or `**`.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # the file has changed since
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            lines = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if lines == place:
                return node.func.end_lineno
    return None
