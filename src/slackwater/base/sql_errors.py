"""What is wrong with a SQL expression, in one sentence.

For most mistakes, Polars only says that it cannot parse the text, and it shows unsupported syntax as the tree of its
parser. The parser itself knows what it expected and where, so the text is parsed again as part of a query.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl
from polars.exceptions import PolarsError

_QUERY: Final = "SELECT\n"
_UNPARSED: Final = ("unable to parse '", "invalid expression ", "sql parser error: ")
_EXPECTED: Final = re.compile(r"Expected: (?P<expected>.+), found: (?P<found>.+)")
_PLACE: Final = re.compile(r"\.? at Line: (?P<line>\d+), Column: (?P<column>\d+)$")
_TREE: Final = re.compile(r"^expression (?P<name>[A-Z]\w*)(?: \{|\()")
_LOCATION: Final = re.compile(r"Location\((?P<line>[1-9]\d*),(?P<column>\d+)\)")
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CLAUSE: Final = re.compile(r"found '(?P<word>\w+)' clause")
_AROUND: Final = 20


def sql_cause(text: str, error: Exception) -> str:
    """Return why Polars rejected `text`, and near which part of it."""
    message = str(error).partition("\n")[0]
    if message.startswith(_UNPARSED):
        return _parsed(text)
    if (clause := _CLAUSE.search(message)) is not None:
        return f'`{clause["word"]}` is a keyword; a column of that name is written "{clause["word"]}"'
    if (tree := _TREE.match(message)) is not None:
        name = _WORD.sub(" ", tree["name"]).upper()
        place = _LOCATION.search(message)
        near = _near(text) if place is None else _near(text, int(place["line"]), int(place["column"]))
        return f"{name} is not supported, near {near}"
    return message


def sql_advice(cause: str) -> str:
    """Return what to do about `cause`."""
    if cause.startswith("unsupported function"):
        return "use a function that Polars SQL supports, or a Polars expression"
    if " is not supported, near " in cause:
        return "use what Polars SQL supports, or a Polars expression"
    return "check quotes (text in single quotes, columns in double quotes) and parentheses"


def _parsed(text: str) -> str:
    """Return the parser's error for `text` as the only column of a query."""
    try:
        pl.SQLContext().execute(_QUERY + text)
    except PolarsError as error:
        message = str(error).partition("\n")[0].removeprefix("sql parser error: ")
    else:
        return "it is not one value"
    place = _PLACE.search(message)
    near = f", at the end of {_near(text)}"
    if place is not None:
        message = message[: place.start()]
        # The query has one line before the text.
        near = f", near {_near(text, int(place['line']) - 1, int(place['column']))}"
    if (wrong := _EXPECTED.fullmatch(message)) is not None:
        found = "" if wrong["found"] == "EOF" else f" instead of `{wrong['found']}`"
        message = f"expected {_quoted(wrong['expected'])}{found}"
    return message[:1].lower() + message[1:] + near


def _quoted(expected: str) -> str:
    """Return what the parser expected: a symbol in quotes, a description unchanged."""
    return expected if " " in expected or expected.islower() else f"`{expected}`"


def _near(text: str, line: int | None = None, column: int = 0) -> str:
    """Return the part of the text around a position, or its end."""
    lines = text.splitlines() or [""]
    found, at = (lines[-1], len(lines[-1])) if line is None else (lines[min(line, len(lines)) - 1], column - 1)
    begin, end = max(0, at - _AROUND), at + _AROUND
    return f"`{'…' * (begin > 0)}{found[begin:end].strip()}{'…' * (end < len(found))}`"
