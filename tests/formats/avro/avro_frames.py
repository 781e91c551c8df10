"""Made-up frames of every type that can be written as Avro."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import strategies as st

from slackwater.formats.ddl import map_type

Values = st.SearchStrategy[Any]

LONG = st.sampled_from(["", "é" * 31, "x" * 33, "y" * 4100])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | LONG
DIGITS_5 = st.integers(-99_999, 99_999).map(lambda number: Decimal(number).scaleb(-2))
DIGITS_38 = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal((number < 0, _digits(number), 0)))
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001  the zone follows


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


def _whole(bits: int, *, signed: bool) -> Values:
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(least, most) | st.integers(max(least, -70), 70)


SINGLE: list[tuple[pl.DataType, Values]] = [
    (pl.Boolean(), st.booleans()),
    (pl.Int8(), _whole(8, signed=True)),
    (pl.Int16(), _whole(16, signed=True)),
    (pl.Int32(), _whole(32, signed=True)),
    (pl.Int64(), _whole(64, signed=True)),
    (pl.UInt8(), _whole(8, signed=False)),
    (pl.UInt16(), _whole(16, signed=False)),
    (pl.UInt32(), _whole(32, signed=False)),
    (pl.UInt64(), _whole(64, signed=False)),
    (pl.Float32(), st.floats(width=32, allow_nan=False)),
    (pl.Float64(), st.floats(allow_nan=False)),
    (pl.String(), TEXTS),
    (pl.Enum(["red", "blue"]), st.sampled_from(["red", "blue"])),
    (pl.Binary(), st.binary(max_size=40)),
    (pl.Date(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (pl.Datetime("us", "UTC"), MOMENTS),
    (pl.Datetime("ms", "UTC"), MOMENTS.map(lambda moment: moment.replace(microsecond=7000))),
    (pl.Decimal(5, 2), DIGITS_5),
    (pl.Decimal(38, 0), DIGITS_38),
]


@st.composite
def dtypes(draw: st.DrawFn, depth: int) -> tuple[pl.DataType, Values]:
    """Draw a type and its values, null among them."""
    shape = draw(st.sampled_from(["single"] * 3 + (["list", "array", "map", "struct"] if depth else [])))
    if shape == "single":
        single, some = draw(st.sampled_from(SINGLE))
        return single, st.none() | some
    if shape == "struct":
        parts = draw(st.lists(dtypes(depth - 1), min_size=1, max_size=3))
        struct = pl.Struct({f"s{place}": inner for place, (inner, _) in enumerate(parts)})
        return struct, st.none() | st.fixed_dictionaries({f"s{place}": each for place, (_, each) in enumerate(parts)})
    inner, values = draw(dtypes(depth - 1))
    if shape == "list":
        return pl.List(inner), st.none() | st.lists(values, max_size=4)
    if shape == "array":
        return pl.Array(inner, 2), st.none() | st.lists(values, min_size=2, max_size=2)
    entries = st.dictionaries(TEXTS, values, max_size=3).map(_entries)
    return map_type(inner), st.none() | entries


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Draw a frame of a few columns and rows, none among them."""
    columns = draw(st.lists(dtypes(2), min_size=1, max_size=4))
    height = draw(st.integers(0, 8))
    return pl.DataFrame(
        [
            pl.Series(f"c{place}", draw(st.lists(values, min_size=height, max_size=height)), dtype=dtype)
            for place, (dtype, values) in enumerate(columns)
        ]
    )


def plain_rows(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows as other libraries take them: maps are dicts, and unsigned numbers of 64 bits are decimals."""
    for row in frame.to_dicts():
        yield {name: _plain(value, frame.schema[name]) for name, value in row.items()}


def _entries(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in found.items()]


def _plain(value: Any, dtype: Any) -> Any:  # noqa: ANN401
    if value is None:
        return None
    match dtype:
        case pl.UInt64():
            return Decimal(value)
        case pl.Struct(fields=fields):
            return {field.name: _plain(value[field.name], field.dtype) for field in fields}
        case pl.List(inner=pl.Struct(fields=[pl.Field(name="key"), pl.Field(name="value", dtype=inner)])):
            return {entry["key"]: _plain(entry["value"], inner) for entry in value}
        case pl.List(inner=inner) | pl.Array(inner=inner):
            return [_plain(item, inner) for item in value]
    return value
