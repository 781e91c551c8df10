"""Parsed JSON: values before they have a declared type, and the message for one that does not fit its type."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from slackwater.formats.schemas import spark_type

_EXCERPT: Final = 60
_MOST_DIGITS: Final = 40
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)


class JsonObject(list[tuple[str, Any]]):
    """A JSON object as written: keys in order, including duplicates."""

    __slots__ = ()


class Real(str):
    """A JSON number with a fraction or an exponent, as written."""

    __slots__ = ()


class Huge(str):
    """A JSON integer with too many digits for any declared type, as written."""

    __slots__ = ()


Declarations = Mapping[tuple[str, pl.DataType], str]
"""How messages show a field's declared type, by its path and its type in JSON, where that is not the declared one."""


class Unfit(Exception):  # noqa: N818  not an error of the program: it never leaves the decoder
    """A value that is not of its declared type; `path` leads to it."""

    def __init__(self, reason: str, declared: pl.DataType, value: object, why: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.declared = declared
        self.value = value
        self.why = why
        self.path = ""

    def within(self, outer: str) -> Unfit:
        """Prepend an outer level to the path, a field `.name` or an item `[3]`, and return this exception."""
        self.path = outer + self.path
        return self

    def words(self, declarations: Declarations = MappingProxyType({})) -> str:
        """Return the message for the dead letter."""
        why = f" ({self.why})" if self.why else ""
        path = self.path.lstrip(".")
        declared = declarations.get((path, self.declared)) or spark_type(self.declared)
        return f"field `{path}` is declared {declared}; got {_shown(self.value)}{why}"


def whole_number(text: str) -> int | Huge:
    """Return a JSON number without fraction or exponent.

    Python refuses to parse numbers with thousands of digits, and no declared type could hold them anyway.
    """
    return int(text) if len(text) <= _MOST_DIGITS else Huge(text)


def parse_number(text: str) -> int | Huge | Real | None:
    """Parse `text` as a JSON number; return None for other text."""
    match = _JSON_NUMBER.fullmatch(text)
    if match is None:
        return None
    return whole_number(text) if match.group(1) is None and match.group(2) is None else Real(text)


def excerpt(text: str) -> str:
    """Return the beginning of `text` as one printable line."""
    return json.dumps(text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else ""), ensure_ascii=not text.isprintable())


def _shown(value: object) -> str:
    """Return the kind and the beginning of a parsed JSON value."""
    if isinstance(value, bool):
        return f"boolean {json.dumps(value)}"
    if isinstance(value, int | Real | Huge):
        return f"number {str(value)[:_EXCERPT]}"
    if isinstance(value, str):
        return f"string {excerpt(value)}"
    if isinstance(value, JsonObject):
        return f"an object of {len(value)} fields"
    if isinstance(value, list):
        return f"an array of {len(value)} items"
    return "null"
