"""One JSON record at a time: what it holds, or exactly what is wrong with it.

This is the definition of what decoding means. It is exact and slow, so it sees only the records that
could not be proven right all at once (see `json_patterns`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

import polars as pl

from slackwater.formats.base import Flaw
from slackwater.formats.json_values import Huge, Pairs, Real, Unfit, converter, excerpt

_TOKENS: Final = re.compile(r'"(?>[^"\\]*(?:\\.[^"\\]*)*)(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_BLANK: Final = " \t\n\r"
_MOST_DIGITS: Final = 40


class RecordReader:
    """Reads records of one schema; never raises, whatever the text."""

    def __init__(self, schema: pl.Schema, *, max_depth: int) -> None:
        self._names = schema.names()
        self._max_depth = max_depth
        self._convert: Callable[[Any], Any] = converter(pl.Struct(dict(schema)))
        self._decoder = json.JSONDecoder(
            object_pairs_hook=Pairs, parse_float=Real, parse_int=_whole_number, parse_constant=_no_constant
        )

    def read(self, text: str) -> tuple[Any, ...] | Flaw:
        """Return the record's values in the order of the schema, or its flaw."""
        parsed = self.parse(text)
        if isinstance(parsed, Flaw):
            return parsed
        try:
            values = self._convert(parsed)
        except Unfit as unfit:
            return Flaw(reason=unfit.reason, message=unfit.words())
        return tuple(values[name] for name in self._names)

    def parse(self, text: str) -> Pairs | Flaw:
        """Return the record's keys and raw values as they stand in it, or its flaw."""
        if not text.strip(_BLANK):
            return Flaw(reason="empty_record", message="the record is empty")
        if _is_deeper(text, self._max_depth):
            words = f"the record is nested deeper than {self._max_depth} levels; begins {excerpt(text)}"
            return Flaw(reason="too_deep", message=words)
        try:
            parsed = self._decoder.decode(text)
        except ValueError as error:
            return Flaw(reason="malformed", message=_malformed(error, text))
        if not isinstance(parsed, Pairs):
            return Flaw(reason="not_an_object", message=f"a record must be a JSON object; got {excerpt(text)}")
        return parsed


def _is_deeper(text: str, max_depth: int) -> bool:
    """Return whether `text` has more than `max_depth` brackets open at once, strings aside."""
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
    near = text[max(error.pos - 10, 0) : error.pos + 40]
    said = error.msg.removesuffix(" at")  # some of its messages end so, for a position to follow
    return f"{said} at character {error.pos}, near {excerpt(near)}"


def _whole_number(text: str) -> int | Huge:
    # Python refuses to read numbers of thousands of digits; no declared type could hold them anyway.
    return int(text) if len(text) <= _MOST_DIGITS else Huge(text)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")
