"""The error catalogue: every mistake a user can make, its stable code, and what to do about it.

A message has three parts: the rule that was broken; what was found; what to do. `refuse` builds a `DefinitionError`
(the pipeline is refused when it is built), `fault` a `RunError` (a running or starting job cannot continue). Codes
never change once released; messages may.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from slackwater.base.errors.catalogue import CATALOGUE, OF_ANOTHER_VERSION

ErrorT = TypeVar("ErrorT", bound="SlackwaterError")


class SlackwaterError(Exception):
    """Base class of all Slackwater errors; `code` is the entry in the catalogue."""

    where: str | None = None
    """The user's file and line of an invalid definition, if known."""
    facts: Mapping[str, object] = MappingProxyType({})
    """What the message was rendered from, for code that handles the error; not known after the error was pickled."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type[SlackwaterError], tuple[str, str]]:
        return (type(self), (self.code, self.message))


class DefinitionError(SlackwaterError):
    """An invalid pipeline, rejected when it is built, before it touches data."""


class NoSuchCallError(DefinitionError, AttributeError):
    """A call that a definition does not have, with the probably intended one; `hasattr` returns False."""

    @classmethod
    def of(cls, error: DefinitionError) -> NoSuchCallError:
        """Convert `error` to this class."""
        return cls(error.code, error.message)


class RunError(SlackwaterError):
    """A job that cannot start, or cannot continue without losing or duplicating rows."""


class UnplacedError(RunError):
    """A failure raised where the step is unknown, though the key may be known."""

    def placed(self, step: str, keys: tuple[str, ...]) -> RunError:
        """Return the error with its step and, if known, its key."""
        raise NotImplementedError


class RowError(RunError):
    """The error of one row, which becomes a dead letter, or fails the run if there is no output for it."""


class SlackwaterWarning(UserWarning):
    """A condition that a job reports while it continues."""


def render(code: str, **facts: object) -> str:
    """Return the catalogue's message for `code` with `facts` filled in."""
    return CATALOGUE[code].format(**facts)


def notice(code: str, **facts: object) -> str:
    """Return the text of a warning: its code, and the message with `facts` filled in."""
    return f"[{code}] {render(code, **facts)}"


def refuse(code: str, **facts: object) -> DefinitionError:
    """Return the `DefinitionError` for `code`, to be raised by the caller."""
    return _made(DefinitionError, code, facts)


def fault(code: str, **facts: object) -> RunError:
    """Return the `RunError` for `code`, to be raised by the caller."""
    return _made(RunError, code, facts)


def fault_of_version(code: str, *, what: str, why: object) -> RunError:
    """Return the `RunError` for `code`, one of `VERSIONED`, for what another version of Slackwater wrote."""
    error = RunError(code, OF_ANOTHER_VERSION.format(what=what, why=why))
    error.facts = {"what": what, "why": why}
    return error


def row_error(code: str, **facts: object) -> RowError:
    """Return the `RowError` for `code`, to be raised by the caller."""
    return _made(RowError, code, facts)


def _made(kind: type[ErrorT], code: str, facts: Mapping[str, object]) -> ErrorT:
    error = kind(code, render(code, **facts))
    error.facts = facts
    return error


def counted(number: int, what: str) -> str:
    """Return a number with a noun: 1 row, 2,000 rows."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def cause_of(error: BaseException) -> str:
    """Return an error's type and the first line of its message."""
    shown = str(error).strip().partition("\n")[0].rstrip()
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def listed(names: Iterable[object], *, near: str = "", most: int = 10) -> str:
    """Return names as a list in a sentence; of many, `most` of them, those like `near` first, and a number."""
    texts = [str(name) for name in names]
    if (more := len(texts) - most) <= 0:
        return ", ".join(texts) or "none"
    close = difflib.get_close_matches(near, texts, n=most) if near else []
    first = [*close, *(text for text in texts if text not in close)][:most]
    return f"{', '.join(first)} and {more:,} more"


def near_miss(name: str, known: Iterable[str]) -> str:
    """Return ' (did you mean `x`?)' if one of `known`, or its part before the first dot, is close to `name`."""
    names = list(known)
    alike = [each for each in names if _folded(each) == _folded(name)]
    heads = {each.partition(".")[0]: each for each in reversed(names)}
    close = alike or difflib.get_close_matches(name, names, n=1)
    close = close or [heads[head] for head in difflib.get_close_matches(name, heads, n=1)]
    return f" (did you mean `{close[0]}`?)" if close else ""


def _folded(name: str) -> str:
    """Return a name without what is easily confused: upper case, dashes and spaces."""
    return name.lower().replace("-", "_").replace(" ", "_")
