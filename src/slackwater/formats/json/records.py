"""Reads one JSON record at a time: its values, or its exact flaw.

This module defines what decoding means. It is exact and slow, so it reads only the records that could not be proven
valid in bulk (see `patterns`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from slackwater.formats.base import Flaw
from slackwater.formats.json.parsed import Declarations, JsonObject, Real, Unfit, excerpt, whole_number
from slackwater.formats.json.texts import read_string
from slackwater.formats.json.values import converter

_TOKENS: Final = re.compile(r'"(?>[^"\\]*(?:\\.[^"\\]*)*)(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_BLANK: Final = " \t\n\r"
_BLANKS: Final = re.compile(f"[{_BLANK}]*")


class RecordReader:
    """Reads records of one schema; never raises, whatever the text.

    With `keep_unknown`, a record has one more value: its undeclared fields, with their original text. The levels that
    it is `wrapped_in` do not count towards its depth.
    """

    def __init__(
        self,
        schema: pl.Schema,
        *,
        max_depth: int,
        wrapped_in: int = 0,
        keep_unknown: bool = False,
        numbers_as_strings: bool = False,
        declarations: Declarations = MappingProxyType({}),
    ) -> None:
        self._names = schema.names()
        self._max_depth = max_depth
        self._wrapped_in = wrapped_in
        self._keep_unknown = keep_unknown
        self._declarations = declarations
        self._convert: Callable[[Any], Any] = converter(pl.Struct(dict(schema)), numbers_as_strings=numbers_as_strings)
        self._decoder = json.JSONDecoder(
            object_pairs_hook=JsonObject, parse_float=Real, parse_int=whole_number, parse_constant=_no_constant
        )

    def read(self, text: str) -> tuple[Any, ...] | Flaw:
        """Return the record's values in schema order, or its flaw."""
        parsed = self.parse(text)
        if isinstance(parsed, Flaw):
            return parsed
        try:
            values = self._convert(parsed)
        except Unfit as unfit:
            return Flaw(reason=unfit.reason, message=unfit.words(self._declarations))
        row = tuple(values[name] for name in self._names)
        if not self._keep_unknown:
            return row
        unknown = self._unknown(text) if any(key not in values for key, _ in parsed) else None
        return unknown if isinstance(unknown, Flaw) else (*row, unknown)

    def parse(self, text: str) -> JsonObject | Flaw:
        """Return the record's keys and raw values, in order, or its flaw."""
        if not text.strip(_BLANK):
            return Flaw(reason="empty_record", message="the record is empty")
        if _is_deeper(text, self._max_depth + self._wrapped_in):
            words = f"the record is nested deeper than {self._max_depth} levels; begins {excerpt(text)}"
            return Flaw(reason="too_deep", message=words)
        try:
            parsed = self._decoder.decode(text)
        except ValueError as error:
            return Flaw(reason="malformed", message=_malformed(error, text))
        if not isinstance(parsed, JsonObject):
            return Flaw(reason="not_an_object", message=f"a record must be a JSON object; got {excerpt(text)}")
        return parsed

    def _unknown(self, text: str) -> list[dict[str, str]] | Flaw:
        """Return the undeclared fields of a well-formed record, with the text of their values."""
        kept = []
        at = text.index("{")
        while text[at] != "}":
            # Skip the bracket or the comma, then the colon.
            key, at = self._decoder.raw_decode(text, _skip_blanks(text, at + 1))
            start = _skip_blanks(text, _skip_blanks(text, at) + 1)
            _, end = self._decoder.raw_decode(text, start)
            at = _skip_blanks(text, end)
            if key not in self._names:
                try:
                    kept.append({"key": read_string(key), "value": text[start:end]})
                except UnicodeEncodeError:
                    words = f"a field that is not declared has half of a surrogate pair in its name, {excerpt(key)}"
                    return Flaw(reason="malformed", message=words)
        return kept


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None  # it also matches the empty string
    return match.end()


def _is_deeper(text: str, max_depth: int) -> bool:
    """Return whether `text` has more than `max_depth` brackets open at once, not counting those in strings."""
    if text.count("[") + text.count("{") <= max_depth:
        return False
    depth = 0
    for token in _TOKENS.finditer(text):
        mark = text[token.start()]
        if mark in "[{":
            depth += 1
            if depth > max_depth:
                return True
        elif mark != '"':
            depth -= 1
    return False


def _malformed(error: ValueError, text: str) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return f"{error}, in {excerpt(text)}"
    begin = max(error.pos - 10, 0)
    quote = text.rfind('"', max(begin - 30, 0), error.pos)
    near = text[quote if 0 <= quote < begin else begin : error.pos + 40]
    shown = error.msg.removesuffix(" at")  # some messages end in "at", expecting a position
    return f"{shown} at character {error.pos}, near {excerpt(near)}"


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")
