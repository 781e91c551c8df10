"""Spark's DDL strings, read without Spark: `"order_id string, amount decimal(10,2), tags array<string>"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.base.errors import near_miss, refuse
from slackwater.base.expressions import check_column_name

TIMESTAMP: Final = pl.Datetime("us", "UTC")
"""The only timestamp type that users see."""

_SCALARS: Final[dict[str, pl.DataType]] = {
    "bigint": pl.Int64(),
    "binary": pl.Binary(),
    "boolean": pl.Boolean(),
    "byte": pl.Int8(),
    "date": pl.Date(),
    "double": pl.Float64(),
    "float": pl.Float32(),
    "int": pl.Int32(),
    "integer": pl.Int32(),
    "long": pl.Int64(),
    "real": pl.Float32(),
    "short": pl.Int16(),
    "smallint": pl.Int16(),
    "string": pl.String(),
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP,
    "tinyint": pl.Int8(),
}
_FOREIGN: Final = {
    "bigint": ("i64", "int64", "u32", "uint32"),
    "binary": ("blob", "bytea", "bytes", "large_binary"),
    "boolean": ("bool", "bool_"),
    "date": ("date32", "date64"),
    "decimal(20,0)": ("u64", "uint64"),
    "double": ("f64", "float64", "float8"),
    "float": ("f32", "float32", "float4"),
    "int": ("i32", "int32", "u16", "uint16"),
    "smallint": ("i16", "int16", "u8", "uint8"),
    "string": ("cat", "categorical", "enum", "large_string", "large_utf8", "object", "str", "text", "utf8"),
    "timestamp": ("datetime", "datetime64", "timestamptz"),
    "tinyint": ("i8", "int8"),
    "array<…>": ("large_list", "list"),
    "map<string, …>": ("dict",),
}
"""Spark's types, with what Polars, Arrow, NumPy, Python and Postgres call them; unsigned ones fit the next wider."""
_SPARKS: Final = {name: ours for ours, names in _FOREIGN.items() for name in names}
_DECIMALS: Final = ("decimal", "dec", "numeric")
_TEXTS: Final = ("varchar", "char")
_NESTED: Final = ("array", "map", "struct")
_KNOWN: Final = sorted((*_SCALARS, "decimal", "numeric", *_TEXTS, *_NESTED))
_MAX_DECIMAL_DIGITS: Final = 38
_MAX_NESTING: Final = 32

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<word>[\w.$@-]+)|(?P<mark>[<>(),:]))"
)


@dataclass(frozen=True, kw_only=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_ddl(text: str) -> list[tuple[str, pl.DataType]]:
    """Parse the names and types of the columns in `text`, in order; refuse text that Spark would not accept.

    `NOT NULL` and `COMMENT '…'` are accepted and have no effect: any column may be null, as in Spark.
    """
    return _Parser(text).columns()


class _Parser:
    """Reads one DDL string from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split()
        self.next = 0
        self.depth = 0

    def columns(self) -> list[tuple[str, pl.DataType]]:
        if self._peek().kind == "end":
            raise self._wrong("no column", "name at least one, as in `id string`")
        columns = self._fields()
        if self._peek().kind != "end":
            raise self._wrong(f"`{self._peek().text}`", "columns are separated by commas")
        return columns

    def _split(self) -> list[_Token]:
        tokens, at, end = [], 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                types = "write types as Spark does: array<bigint>, timestamp"
                remedy = types if self.text[at] in "[]" else "put unusual names in backticks: `a name`"
                raise _unreadable(self.text, at, f"`{self.text[at]}`", remedy)
            kind = str(match.lastgroup)
            tokens.append(_Token(kind=kind, text=match[kind], at=match.start(kind)))
            at = match.end()
        return [*tokens, _Token(kind="end", text="the end", at=end)]

    def _fields(self) -> list[tuple[str, pl.DataType]]:
        fields = [self._field()]
        while self._accept(","):
            fields.append(self._field())
        return fields

    def _field(self) -> tuple[str, pl.DataType]:
        token = self._take()
        if token.kind == "quoted":
            name = token.text[1:-1].replace("``", "`")
        elif token.kind == "word":
            name = token.text
        else:
            raise self._wrong(f"`{token.text}` where a column name is expected", "write `name type`", token)
        self._accept(":")
        dtype = self._type(name)
        if self._accept_word("not") and not self._accept_word("null"):
            raise self._wrong(f"`not` before `{self._peek().text}`", "write NOT NULL")
        if self._accept_word("comment") and self._take().kind != "text":
            raise self._wrong("a comment without quotes", "write COMMENT 'text'")
        return name, dtype

    def _type(self, name: str) -> pl.DataType:
        token = self._take()
        word = token.text.lower()
        if token.kind != "word":
            raise self._wrong(f"no type for `{name}`", "write `name type`, as in `amount double`", token)
        if word in _SCALARS:
            return _SCALARS[word]
        if word in _DECIMALS:
            return self._decimal(token)
        if word in _TEXTS:
            self._numbers()
            return pl.String()
        if word in _NESTED:
            return self._nested(word, token)
        ours = _SPARKS.get(word.rpartition(".")[2])
        hint = near_miss(word, _KNOWN) if ours is None else f" (did you mean `{ours}`?)"
        raise self._wrong(f"unknown type `{token.text}` of `{name}`{hint}", f"use one of {', '.join(_KNOWN)}", token)

    def _decimal(self, token: _Token) -> pl.DataType:
        given = self._numbers() if self._peek().text == "(" else (10, 0)
        precision, scale, *more = (*given, 0) if len(given) == 1 else given
        if more or not 1 <= precision <= _MAX_DECIMAL_DIGITS or not 0 <= scale <= precision:
            problem = f"decimal({','.join(map(str, given))})"
            remedy = f"precision is 1 to {_MAX_DECIMAL_DIGITS}, scale 0 to the precision"
            raise self._wrong(problem, remedy, token)
        return pl.Decimal(precision, scale)

    def _numbers(self) -> tuple[int, ...]:
        self._expect("(")
        numbers = [self._number()]
        while self._accept(","):
            numbers.append(self._number())
        self._expect(")")
        return tuple(numbers)

    def _number(self) -> int:
        token = self._take()
        if not (token.text.isascii() and token.text.isdigit() and len(token.text) <= len("2147483647")):
            raise self._wrong(f"`{token.text}` where a number is expected", "write, for example, decimal(10,2)", token)
        return int(token.text)

    def _nested(self, word: str, token: _Token) -> pl.DataType:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise self._wrong(f"more than {_MAX_NESTING} levels of nested types", "declare fewer levels", token)
        build: dict[str, Callable[[], pl.DataType]] = {
            "array": lambda: pl.List(self._type("an array's items")),
            "map": self._map,
            "struct": lambda: pl.Struct(dict(check_distinct(self._fields()))),
        }
        self._expect("<")
        dtype = build[word]()
        self._expect(">")
        self.depth -= 1
        return dtype

    def _map(self) -> pl.DataType:
        token = self._peek()
        if self._type("a map's keys") != pl.String:
            raise self._wrong(f"a map with keys of type `{token.text}`", "use map<string, …>", token)
        self._expect(",")
        return map_type(self._type("a map's values"))

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _take(self) -> _Token:
        token = self.tokens[self.next]
        self.next = min(self.next + 1, len(self.tokens) - 1)
        return token

    def _accept(self, mark: str) -> bool:
        if self._peek().kind == "mark" and self._peek().text == mark:
            self._take()
            return True
        return False

    def _accept_word(self, word: str) -> bool:
        if self._peek().kind == "word" and self._peek().text.lower() == word:
            self._take()
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._wrong(f"`{self._peek().text}` where `{mark}` belongs", "close the bracket")

    def _wrong(self, problem: str, remedy: str, token: _Token | None = None) -> Exception:
        return _unreadable(self.text, (token or self._peek()).at, problem, remedy)


def map_type(value: pl.DataType) -> pl.DataType:
    """Return the type of a map from strings to `value`: a list of entries."""
    return pl.List(pl.Struct({"key": pl.String(), "value": value}))


def check_distinct(columns: list[tuple[str, pl.DataType]]) -> list[tuple[str, pl.DataType]]:
    """Return `columns`; refuse duplicate names."""
    check_distinct_names(name for name, _ in columns)
    return columns


def check_distinct_names(names: Iterable[str], *, place: str = "") -> None:
    """Refuse duplicate column names, ignoring case as Spark does; `place` says where they are."""
    seen: dict[str, str] = {}
    for name in names:
        check_column_name(name, place=place)
        if name.lower() in seen:
            raise refuse("DUPLICATE_COLUMN", name=name, other=seen[name.lower()], place=place)
        seen[name.lower()] = name


def _unreadable(text: str, at: int, problem: str, remedy: str) -> Exception:
    shown = text[at : at + 20]
    where = f"position {at + 1}, before `{shown}`" if shown.strip() else "the end"
    return refuse("BAD_SCHEMA", problem=f"{problem} at {where}", remedy=remedy)
