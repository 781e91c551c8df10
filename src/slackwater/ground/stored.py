"""What was stored as JSON, read back: as it was written, or an error that names the file and what to do."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from slackwater.errors import RunError, fault

Damaged = Callable[[Path, str], RunError]
"""Makes the error for a file, and why it cannot be read."""
_DAMAGES: Final = (ValueError, KeyError, TypeError, AttributeError, IndexError)


def read_stored(path: Path, shape: Any, damaged: Damaged) -> Any:  # noqa: ANN401  the shape says what it is
    """Return what a file holds, as `shape` says; raises `damaged` if it is, and `FileNotFoundError`."""
    with readable(path, damaged):
        text = path.read_text(encoding="utf-8")
        if not text.strip():
            raise ValueError("it is empty")
        return shaped(json.loads(text), shape)


@contextmanager
def readable(path: Path, damaged: Damaged) -> Iterator[None]:
    """Turn what goes wrong with a damaged file into the error that says so."""
    try:
        yield
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
        raise ValueError(f"{json.dumps(value)[:40]} is not of type {kind.__name__}")
    parts = get_args(shape)
    if isinstance(value, dict) and parts:
        return {name: shaped(each, parts[1]) for name, each in value.items()}
    if isinstance(value, list) and parts:
        return kind(shaped(each, parts[0]) for each in value)
    return value


def _fields(value: Any, shape: Any) -> Any:  # noqa: ANN401  as above
    if not isinstance(value, Mapping):
        raise TypeError(f"{json.dumps(value)[:40]} is not an object")
    hints = _hints(shape)
    known = {name: shaped(each, hints[name]) if name in hints else each for name, each in value.items()}
    if missing := sorted(_required(shape) - {*known}):
        raise ValueError(f"`{missing[0]}` is missing")
    return known if is_typeddict(shape) else shape(**known)


@lru_cache
def _required(shape: Any) -> frozenset[str]:  # noqa: ANN401  as above
    if is_typeddict(shape):
        return frozenset(shape.__required_keys__)
    return frozenset(each.name for each in fields(shape) if each.default is MISSING and each.default_factory is MISSING)


@lru_cache
def _hints(shape: Any) -> dict[str, Any]:  # noqa: ANN401  as above
    return get_type_hints(shape)


def _why(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return "it is not text"
        case json.JSONDecodeError():
            return f"it is not JSON (line {error.lineno}, column {error.colno})"
        case KeyError():
            return f"{error} is missing"
    return str(error)


def damaged(checkpoint: Path) -> Damaged:
    """Return what makes the error for a damaged file of a checkpoint."""
    return lambda path, why: fault("CHECKPOINT_DAMAGED", path=path, why=why, checkpoint=checkpoint)
