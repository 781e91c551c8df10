"""Values that Python cannot represent: dates and times outside the years 1 to 9999, and durations of a billion days.

Polars stores them, but raises when it converts them, and would take the whole frame down with it. So the columns
whose types have such values are checked before a frame is converted, with one comparison each.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

import polars as pl

from slackwater.base.times import EPOCH
from slackwater.formats.schemas import whole_type

OUT_OF_RANGE: Final = "out_of_range"
"""The reason of dead letters for events with such a value."""
_DAYS: Final = (date.min.toordinal() - EPOCH.date().toordinal(), date.max.toordinal() - EPOCH.date().toordinal())
_TIMES: Final = (datetime.min.replace(tzinfo=UTC) - EPOCH, datetime.max.replace(tzinfo=UTC) - EPOCH)
_DURATIONS: Final = (timedelta.min, timedelta.max)
_A_DAY: Final = timedelta(days=1)
_UNITS: Final = {"ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}
"""The units that may reach beyond Python's range; 64 bits of nanoseconds do not."""
_MOST_LETTERS: Final = 1_000
_MOST: Final = (1 << 63) - 1


def limited(types: Mapping[str, pl.DataType]) -> dict[str, pl.Expr]:
    """Return, for each column that can hold such values, whether a row has one there."""
    checks = {name: _is_beyond(pl.col(name), dtype) for name, dtype in types.items()}
    return {name: check.fill_null(value=False).alias(name) for name, check in checks.items() if check is not None}


def split_off(rows: pl.DataFrame, checks: Mapping[str, pl.Expr]) -> tuple[pl.DataFrame, pl.DataFrame, pl.Series]:
    """Return the rows that Python can represent, the others, and a message for each of those."""
    if not checks or rows.is_empty():
        return rows, rows.clear(), pl.Series(dtype=pl.String)
    is_beyond = rows.select(pl.any_horizontal(checks.values())).to_series()
    if not is_beyond.any():
        return rows, rows.clear(), pl.Series(dtype=pl.String)
    beyond = rows.filter(is_beyond)
    flags = beyond.select(checks.values())
    names = [next(name for name, flag in row.items() if flag) for row in flags.iter_rows(named=True)]
    messages = [_message(name, beyond[name].slice(place, 1)) for place, name in enumerate(names)]
    return rows.filter(~is_beyond), beyond, pl.Series(messages, dtype=pl.String)


def _message(name: str, value: pl.Series) -> str:
    got = str(value.to_physical().to_list()[0])
    rule = f"column `{name}` must hold what Python can represent: the years 1 to 9999"
    return f"{rule}; got {got}, as stored; correct its unit"[:_MOST_LETTERS]


def _is_beyond(value: pl.Expr, dtype: pl.DataType) -> pl.Expr | None:
    """Return whether `value` is or contains a value beyond Python's range; None if its type has none."""
    if isinstance(dtype, pl.Date):
        return ~value.to_physical().is_between(*_DAYS)
    if isinstance(dtype, pl.Datetime | pl.Duration) and dtype.time_unit in _UNITS:
        return _is_outside(value, dtype)
    if isinstance(dtype, pl.List | pl.Array):
        inside = _is_beyond(pl.element(), whole_type(dtype.inner))
        if inside is None:
            return None
        values = value.cast(pl.List(dtype.inner)) if isinstance(dtype, pl.Array) else value
        return values.list.eval(inside).list.any()
    if isinstance(dtype, pl.Struct):
        fields = ((value.struct.field(field.name), whole_type(field.dtype)) for field in dtype.fields)
        checks = [check for field in fields if (check := _is_beyond(*field)) is not None]
        return pl.any_horizontal(check.fill_null(value=False) for check in checks) if checks else None
    return None


def _is_outside(value: pl.Expr, dtype: pl.Datetime | pl.Duration) -> pl.Expr | None:
    unit, (first, last) = _UNITS[dtype.time_unit or "us"], _DURATIONS if isinstance(dtype, pl.Duration) else _TIMES
    if isinstance(dtype, pl.Datetime) and dtype.time_zone not in {None, "UTC"}:
        first, last = first + _A_DAY, last - _A_DAY  # the local time must fit, too
    least, most = -(-first // unit), last // unit
    if -least > _MOST and most > _MOST:
        return None
    return ~value.to_physical().is_between(pl.lit(least, dtype=pl.Int64), pl.lit(most, dtype=pl.Int64))
