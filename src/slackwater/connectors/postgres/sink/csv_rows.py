"""Rows as text for COPY, encoded whole columns at a time.

In COPY's CSV an empty field is null and "" is empty text, so all text is quoted. Bytes are hex, nested values JSON
(with bytes as base64, and null for a float that JSON cannot represent), times in UTC.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Final

import polars as pl

from slackwater.base.errors import row_error
from slackwater.connectors.postgres.sink.column_types import NESTED, TEXTS
from slackwater.formats.row_json import bytes_as_base64, check_json

_TIME: Final = "%Y-%m-%dT%H:%M:%S%.6f+00"
_OF_YEAR: Final = "-%m-%dT%H:%M:%S%.6f+00"
_OF_YEAR_DATE: Final = "-%m-%d"
_COMMON_DAYS: Final = (-719_162, 2_932_896)
"""Years 1 to 9999, in days since 1970: these are written with four digits."""
_ALL_DAYS: Final = (-2_440_588, 95_026_236)
"""From the first day in Postgres to the last in Polars."""
_PER_DAY: Final = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NUL: Final = "\x00"
_RISKY: Final = (*TEXTS, *NESTED, pl.Date, pl.Datetime)
"""Types with values that Postgres cannot store."""


@dataclass(frozen=True, kw_only=True)
class CsvField:
    """A column of the rows, and the table's column it is written to."""

    source: str
    name: str
    dtype: pl.DataType


@dataclass(frozen=True, kw_only=True)
class CsvRows:
    """Encodes rows as CSV for COPY."""

    fields: tuple[CsvField, ...]
    replace_nul: str | None
    """The replacement for NUL characters, which Postgres cannot store; None makes such a row a dead letter."""

    def encoded(self, rows: pl.DataFrame, extra: tuple[pl.Expr, ...] = ()) -> bytes:
        """Return the fields of `rows`, followed by `extra`, as CSV."""
        out = BytesIO()
        self._plain(rows, extra).write_csv(out, include_header=False, quote_style="non_numeric", datetime_format=_TIME)
        return out.getvalue()

    def try_out(self, rows: pl.DataFrame) -> None:
        """Raise if a row has a value that Postgres cannot store."""
        risky = tuple(field for field in self.fields if isinstance(field.dtype, _RISKY))
        check_json(rows.select({field.source for field in risky if isinstance(field.dtype, NESTED)}))
        replace(self, fields=risky)._plain(rows)  # noqa: SLF001  own private method

    def _plain(self, rows: pl.DataFrame, extra: tuple[pl.Expr, ...] = ()) -> pl.DataFrame:
        plain = rows.select(
            *(_as_written(rows, field).alias(field.name) for field in self.fields),
            *extra,
        )
        plain = plain.with_columns(_json(plain, field.name) for field in self.fields if isinstance(field.dtype, NESTED))
        return self._without_nul(plain)

    def _without_nul(self, plain: pl.DataFrame) -> pl.DataFrame:
        texts = {field.name: _NUL for field in self.fields if isinstance(field.dtype, TEXTS)}
        nested = {field.name: "\\u0000" for field in self.fields if isinstance(field.dtype, NESTED)}
        suspects = {**texts, **nested}
        found = plain.select(pl.col(name).str.contains(nul, literal=True).any() for name, nul in suspects.items())
        for name in [name for name in suspects if found[name].item()]:
            cleaned = plain.select(_replaced(pl.col(name), self.replace_nul or "", is_json=name in nested)).to_series()
            differs = (cleaned != plain[name]).fill_null(value=False)
            if self.replace_nul is None and differs.any():
                raise row_error("POSTGRES_NUL", column=name)
            plain = plain.with_columns(cleaned)
        return plain


def _as_written(rows: pl.DataFrame, field: CsvField) -> pl.Expr:
    column, dtype = pl.col(field.source), field.dtype
    if isinstance(dtype, pl.Binary):
        return pl.lit("\\x") + column.bin.encode("hex")
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if isinstance(dtype, pl.Date | pl.Datetime):
        days = rows[field.source].to_physical()
        if isinstance(dtype, pl.Datetime):
            days = days // _PER_DAY[dtype.time_unit]
        if not days.is_between(*_ALL_DAYS).all():
            raise row_error("POSTGRES_TIME", column=field.name)
        if not days.is_between(*_COMMON_DAYS).all():
            return _any_year(column, _OF_YEAR_DATE if isinstance(dtype, pl.Date) else _OF_YEAR)
    return column


def _any_year(column: pl.Expr, rest: str) -> pl.Expr:
    """Return times as Postgres writes those before year 1, counted back from 1 BC, and after 9999."""
    year = column.dt.year().cast(pl.Int64)
    is_before = year < 1
    counted = pl.when(is_before).then(1 - year).otherwise(year).cast(pl.String).str.zfill(4)
    return counted + column.dt.strftime(rest) + pl.when(is_before).then(pl.lit(" BC")).otherwise(pl.lit(""))


def _json(plain: pl.DataFrame, name: str) -> pl.Series:
    """Return a nested column as JSON: each value is encoded in an object of one field, which is then stripped."""
    wrapped = bytes_as_base64(plain.select(v=pl.col(name)))
    text = pl.struct(pl.col("v")).struct.json_encode().str.strip_prefix('{"v":').str.strip_suffix("}")
    return wrapped.select(pl.when(pl.col("v").is_not_null()).then(text).alias(name)).to_series()


def _replaced(column: pl.Expr, by: str, *, is_json: bool) -> pl.Expr:
    if not is_json:
        return column.str.replace_all(_NUL, by, literal=True)
    # An escaped backslash before `u0000` is not a NUL. JSON has no bare NUL, so one can stand in for it meanwhile.
    kept = column.str.replace_all("\\\\", _NUL, literal=True)
    inside = json.dumps(by, ensure_ascii=False)[1:-1]
    return kept.str.replace_all("\\u0000", inside, literal=True).str.replace_all(_NUL, "\\\\", literal=True)
