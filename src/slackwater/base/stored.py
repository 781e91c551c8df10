"""Reading stored JSON: the values as written, or an error that names the file and what to do."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from slackwater.base.errors import RunError, fault, fault_of_version

Damaged = Callable[[Path, str], RunError]
"""Returns the error for a file, given why it cannot be read."""
_DAMAGES: Final = (ValueError, KeyError, TypeError, AttributeError, IndexError, IsADirectoryError, NotADirectoryError)
_PLAIN: Final[dict[type[Exception], str]] = {
    UnicodeDecodeError: "it is not text",
    IsADirectoryError: "it is a folder",
    NotADirectoryError: "a file is where its folder belongs",
}
_NOUNS: Final = {int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "an object"}


class DamageError(ValueError):
    """A file is damaged; the message is a sentence about the file."""


class AnotherVersionError(DamageError):
    """A file or a mark is intact, but of a form that this version of Slackwater does not read."""

    @classmethod
    def of(cls, form: object, *, known: int, what: str = "form") -> AnotherVersionError:
        """Return the error for `form`, where this version reads `known`."""
        return cls(f"it has {what} {form}, and this version reads {known}")


@contextmanager
def readable(path: Path, damaged: Damaged) -> Iterator[None]:
    """Turn the errors of reading a damaged file into the error of `damaged`."""
    try:
        yield
    except AnotherVersionError as error:
        raise fault_of_version(damaged(path, str(error)).code, what=f"`{path}`", why=error) from error
    except _DAMAGES as error:
        raise damaged(path, _why(error)) from error


def shaped(value: Any, shape: Any) -> Any:  # noqa: ANN401  as above
    """Return a JSON value as a type: a dataclass, `dict[str, …]`, a typed dictionary, a number and so on."""
    if shape is Any:
        return value
    if get_origin(shape) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(shape) if kind is not types.NoneType]
        return None if value is None and len(kinds) < len(get_args(shape)) else shaped(value, kinds[0])
    if is_dataclass(shape) or is_typeddict(shape):
        return _fields(value, shape)
    kind = get_origin(shape) or shape
    if isinstance(value, bool) is not (kind is bool) or not isinstance(value, list if kind is tuple else kind):
        raise _misplaced(value, _NOUNS.get(kind, "a list"))
    parts = get_args(shape)
    if isinstance(value, dict) and parts:
        return {name: _named(name, each, parts[1]) for name, each in value.items()}
    if isinstance(value, list) and parts:
        return kind(shaped(each, parts[0]) for each in value)
    return value


def _fields(value: Any, shape: Any) -> Any:  # noqa: ANN401  as above
    if not isinstance(value, Mapping):
        raise _misplaced(value, "an object")
    hints = _hints(shape)
    known = {name: _named(name, each, hints[name]) if name in hints else each for name, each in value.items()}
    if missing := sorted(_required(shape) - {*known}):
        raise DamageError(f"`{missing[0]}` is missing")
    if is_typeddict(shape):
        return known
    if unknown := sorted({*known} - {*hints}):
        raise DamageError(f"`{unknown[0]}` does not belong there")
    return shape(**known)


def _named(name: str, value: Any, shape: Any) -> Any:  # noqa: ANN401  as above
    try:
        return shaped(value, shape)
    except DamageError as error:
        # The innermost name is enough to find the error.
        raise DamageError(re.sub("^it ", f"`{name}` ", str(error))) from error


def _misplaced(value: Any, noun: str) -> DamageError:  # noqa: ANN401  as above
    return DamageError(f"it has {json.dumps(value)[:40]} where {noun} belongs")


@lru_cache
def _required(shape: Any) -> frozenset[str]:  # noqa: ANN401  as above
    if is_typeddict(shape):
        # `__required_keys__` treats annotations that are still text as required.
        hints = get_type_hints(shape, include_extras=True)
        return frozenset(name for name, hint in hints.items() if get_origin(hint) is not NotRequired)
    return frozenset(each.name for each in fields(shape) if each.default is MISSING and each.default_factory is MISSING)


@lru_cache
def _hints(shape: Any) -> dict[str, Any]:  # noqa: ANN401  as above
    return get_type_hints(shape)


def _why(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"it is not JSON (line {error.lineno}, column {error.colno})"
        case DamageError():
            return str(error)
        case KeyError():
            return f"`{error.args[0]}` is missing"
    return _PLAIN.get(type(error), "it does not hold what was written there")


def damaged(checkpoint: Path) -> Damaged:
    """Return the function that creates the error for a damaged file of a checkpoint."""
    return lambda path, why: fault("CHECKPOINT_DAMAGED", path=path, why=why, checkpoint=checkpoint)
