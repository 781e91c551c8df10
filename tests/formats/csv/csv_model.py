"""The slow, obvious model of CSV decoding: Python's own `csv`, then the declared type, value by value."""

from __future__ import annotations

import csv
import re
from typing import Any

import polars as pl

from tests.formats.json.json_model import BadError, fit


def expected(
    schema: pl.Schema, record: bytes, *, delimiter: str = ",", quote: str | None = '"', null: str = ""
) -> dict[str, Any]:
    """Return the record's row, or raise `BadError`."""
    try:
        text = record.decode("utf-8")
    except ValueError:
        raise BadError from None
    if text in ("", "\n", "\r", "\r\n"):
        raise BadError
    values = split(text, delimiter, quote)
    is_quoted = quoted(text, delimiter, quote)
    if len(values) != len(schema):
        raise BadError
    assert len(is_quoted) == len(values)
    return {
        name: None if value == null and not in_quotes else fit_plain(dtype, value)
        for (name, dtype), value, in_quotes in zip(schema.items(), values, is_quoted, strict=True)
    }


def split(text: str, delimiter: str, quote: str | None) -> list[str]:
    """Return the values as Python's `csv` reads them, if the record keeps to RFC 4180."""
    if not re.fullmatch(
        f"{field(delimiter, quote)}(?:{re.escape(delimiter)}{field(delimiter, quote)})*(\r\n|\n|\r)?", text
    ):
        raise BadError
    if quote is None:
        return re.sub("[\r\n]+$", "", text).split(delimiter)
    [values] = csv.reader([text], delimiter=delimiter, quotechar=quote, strict=True)
    return values


def quoted(text: str, delimiter: str, quote: str | None) -> list[bool]:
    """Return which values stand in quotes."""
    found, at = [], 0
    while True:
        match = re.compile(field(delimiter, quote)).match(text, at)
        assert match is not None
        found.append(quote is not None and match[0].startswith(quote))
        at = match.end() + 1
        if text[match.end() : at] != delimiter:
            return found


def field(delimiter: str, quote: str | None) -> str:
    if quote is None:
        return f"[^{re.escape(delimiter)}\r\n]*"
    mark = re.escape(quote)
    return f"(?:{mark}(?:[^{mark}]|{mark}{mark})*{mark}|[^{mark}{re.escape(delimiter)}\r\n]*)"


def fit_plain(dtype: pl.DataType, value: str) -> Any:  # noqa: ANN401
    if isinstance(dtype, pl.Boolean):
        if value not in ("true", "false"):
            raise BadError
        return value == "true"
    return fit(dtype, value, lenient=True)
