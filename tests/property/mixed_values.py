"""What chains of mixed steps work on: rows of five columns, and keys on which equality is easy to get wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Literal

import polars as pl

T0: Final = 1_700_000_000_000
"""The event time 0 of examples."""
KeyKind = Literal["string", "float", "date", "microseconds", "nanoseconds"]
Key = str | int | float | None
Place = tuple[str, int]
"""What breaks ties between rows of the same time: a partition and an offset; for results, see `mixed_places`."""
NAN: Final = "NaN"
"""NaN in the model, which equals itself."""


@dataclass(frozen=True)
class KeyType:
    """A type of keys, and the keys of that type that examples have, in their physical form."""

    dtype: pl.DataType
    values: tuple[Any, ...]

    @property
    def physical(self) -> pl.DataType:
        """The type of the values."""
        return {pl.String: pl.String(), pl.Float64: pl.Float64(), pl.Date: pl.Int32()}.get(type(self.dtype), pl.Int64())


KEY_TYPES: Final[dict[KeyKind, KeyType]] = {
    "string": KeyType(pl.String(), ("x", "y", None)),
    "float": KeyType(pl.Float64(), (float("nan"), -0.0, 0.0, 1.5, None)),
    # Before the year 1, and after 9999.
    "date": KeyType(pl.Date(), (0, 5_000_000, -4_000_000, None)),
    "microseconds": KeyType(pl.Datetime("us", "UTC"), (0, 400_000_000_000_000_000, None)),
    "nanoseconds": KeyType(pl.Datetime("ns"), (1_000, 1_001, 1_999, 2_000, None)),
}


@dataclass(frozen=True)
class Row:
    """A row in the model: its name, its keys `a` and `b`, a small number or null, its time, and its place."""

    tag: str
    a: Key
    b: int | None
    v: int | None
    at: int
    place: Place = ("", 0)

    def key(self, column: str) -> Key:
        """Return the key by column."""
        return self.a if column == "a" else self.b

    @property
    def shown(self) -> tuple[Any, ...]:
        """The row without its place, as results have it."""
        return (self.tag, self.a, self.b, self.v, self.at)


def canonical(value: Any) -> Key:  # noqa: ANN401  the value of a key
    """Return a key such that equal keys are equal in Python: one NaN, one zero."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    return value  # type: ignore[no-any-return]  # a string, a number or null


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return rows by event time, ties by place."""
    return sorted(rows, key=lambda row: (row.at, row.place))


def shown_rows(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of an output in the form of `Row.shown`."""
    columns = [frame[name].to_physical().to_list() for name in ("tag", "a", "b", "v", "at")]
    return [(tag, canonical(a), b, v, at) for tag, a, b, v, at in zip(*columns, strict=True)]


def number(name: str = "v") -> pl.Expr:
    """Return a number of a row, with 0 for null."""
    return pl.col(name).fill_null(0)


def picked(kind: KeyKind, at: pl.Expr) -> pl.Expr:
    """Return the key that a number stands for."""
    known = KEY_TYPES[kind]
    values = [pl.lit(value, dtype=known.physical).cast(known.dtype) for value in known.values]
    chain = [(at % len(values) == place, value) for place, value in enumerate(values)]
    return reduce(lambda rest, case: pl.when(case[0]).then(case[1]).otherwise(rest), chain[1:], chain[0][1])


def pick(kind: KeyKind, at: int) -> Key:
    """Do the same in the model."""
    values = KEY_TYPES[kind].values
    return canonical(values[at % len(values)])


def is_beyond_python(kind: KeyKind, key: Key) -> bool:
    """Return whether a key is a date or time that Python does not have."""
    if key is None:
        return False
    last = {"date": 2_932_896, "microseconds": 253_402_300_800_000_000}.get(kind)
    return last is not None and not -719_162 <= key <= last  # type: ignore[operator]  # a number
