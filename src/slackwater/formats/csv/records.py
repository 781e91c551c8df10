"""Reads one CSV record at a time: its values, or its exact flaw.

This module defines what decoding means. It is exact and slow, so it reads only the records that could not be proven
valid in bulk (see `split` and `columns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from slackwater.formats.base import Flaw
from slackwater.formats.json.parsed import Unfit, excerpt, parse_number
from slackwater.formats.json.values import converter
from slackwater.formats.schemas import spark_type

LINE_ENDS: Final = ("", "\n", "\r\n", "\r")
"""What may follow the last value of a record."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How values are separated, quoted and marked null."""

    delimiter: str
    quote: str | None
    null: str


class _Unreadable(Exception):  # noqa: N818  not an error of the program: it never leaves this module
    """A record that cannot be split into values."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(reason)
        self.flaw = Flaw(reason=reason, message=words)


class LineReader:
    """Reads records of one schema and dialect; never raises, whatever the text."""

    def __init__(self, schema: pl.Schema, dialect: Dialect) -> None:
        self._schema = schema
        self._dialect = dialect
        self._converters = {name: _converter(dtype) for name, dtype in schema.items()}
        self._plain = re.compile(f"[^{re.escape(dialect.delimiter)}{re.escape(dialect.quote or '')}\r\n]*")

    def read(self, text: str) -> tuple[Any, ...] | Flaw:
        """Return the record's values in schema order, or its flaw."""
        if text in LINE_ENDS:
            return Flaw(reason="empty_record", message="the record is empty")
        try:
            values = self._split(text)
        except _Unreadable as unreadable:
            return unreadable.flaw
        if len(values) != len(self._schema):
            return self._miscounted(values)
        row = []
        for (name, convert), value in zip(self._converters.items(), values, strict=True):
            try:
                row.append(None if value is None else convert(value))
            except Unfit as unfit:
                why = f" ({unfit.why})" if unfit.why else ""
                declared, got = spark_type(self._schema[name]), excerpt(value or "")
                return Flaw(reason=unfit.reason, message=f"column `{name}` is declared {declared}; got {got}{why}")
        return tuple(row)

    def _split(self, text: str) -> list[str | None]:
        """Return the record's values as text, None for null."""
        values: list[str | None] = []
        at = 0
        while True:
            column = self._column(len(values))
            if self._dialect.quote is not None and text.startswith(self._dialect.quote, at):
                value, at = self._quoted(text, at, column)
                values.append(value)
            else:
                start, at = at, self._end_of_plain(text, at)
                values.append(None if text[start:at] == self._dialect.null else text[start:at])
            if text[at:] in LINE_ENDS:
                return values
            if text[at] != self._dialect.delimiter:
                raise _Unreadable(
                    "malformed", f"{column}: {self._stray(text[at])} at character {at}, in {excerpt(text)}"
                )
            at += 1

    def _quoted(self, text: str, at: int, column: str) -> tuple[str, int]:
        """Return the quoted value that begins at `at`, and where it ends."""
        quote = str(self._dialect.quote)
        start = end = at + 1
        while (end := text.find(quote, end)) >= 0 and text.startswith(quote, end + 1):
            end += 2
        if end < 0:
            raise _Unreadable("malformed", f"{column}: a quote is opened and not closed; begins {excerpt(text[at:])}")
        return text[start:end].replace(quote * 2, quote), end + 1

    def _end_of_plain(self, text: str, at: int) -> int:
        match = self._plain.match(text, at)
        assert match is not None  # it also matches the empty string
        return match.end()

    def _stray(self, character: str) -> str:
        if character in "\r\n":
            return "a line break outside quotes"
        return "a quote inside a value" if character == self._dialect.quote else "a value after a closing quote"

    def _column(self, at: int) -> str:
        names = self._schema.names()
        return f"column `{names[at]}`" if at < len(names) else f"after column `{names[-1]}`"

    def _miscounted(self, values: list[str | None]) -> Flaw:
        names = self._schema.names()
        if len(values) < len(names):
            more = f"nothing for `{names[len(values)]}`"
        else:
            more = f"{excerpt(values[len(names)] or '')} after `{names[-1]}`"
        return Flaw(reason="wrong_columns", message=f"a record has {len(names)} columns; got {len(values)}, {more}")


def _converter(dtype: pl.DataType) -> Callable[[str], Any]:
    """Return a function that converts a value's text to a Python value for `dtype`, or raises `Unfit`."""
    if isinstance(dtype, pl.Boolean):
        return _boolean
    convert = converter(dtype)
    if dtype.is_numeric():

        def number(text: str) -> Any:  # noqa: ANN401  a number of any type
            parsed = parse_number(text)
            if parsed is None:
                raise Unfit("wrong_type", dtype, text)
            return convert(parsed)

        return number
    return convert


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise Unfit("wrong_type", pl.Boolean(), text)
    return text == "true"
