"""Values of the user's code, checked one by one: what they yield, and what they put into state.

A value is taken as its column will hold it, so that a batch that reads it back sees what the batch before has seen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.formats.schemas import spark_type
from slackwater.process.failures import MisfitError

Check = Callable[[Any], Any]
"""Returns a value as its column holds it, or raises `MisfitError`; null is always taken."""
_WHOLE: Final[dict[type[pl.DataType], tuple[int, int]]] = {
    kind: (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    for kind, bits, is_signed in (
        (pl.Int8, 8, True),
        (pl.Int16, 16, True),
        (pl.Int32, 32, True),
        (pl.Int64, 64, True),
        (pl.UInt8, 8, False),
        (pl.UInt16, 16, False),
        (pl.UInt32, 32, False),
        (pl.UInt64, 64, False),
    )
}


def checker(dtype: pl.DataType, what: str) -> Check:
    """Return the check of values for a column of type `dtype`; `what` names it in errors."""
    kind = type(dtype)
    if kind in _WHOLE:
        return _whole(dtype, what, *_WHOLE[kind])
    if kind is pl.Float64:
        return _float(dtype, what)
    plain = {pl.String: _text, pl.Boolean: _truth, pl.Binary: _bytes, pl.Date: _day}
    if kind in plain:
        return _plain(dtype, what, plain[kind])
    if isinstance(dtype, pl.Datetime):
        return _plain(dtype, what, _moment)
    return _plain(dtype, what, _narrow) if kind is pl.Float32 else _other(dtype, what)


def _wrong(what: str, dtype: pl.DataType, value: object) -> MisfitError:
    return MisfitError(f"{what} takes {spark_type(dtype)}; got {value!r:.80}")


def _whole(dtype: pl.DataType, what: str, least: int, most: int) -> Check:
    def check(value: Any) -> Any:  # noqa: ANN401  the user's own
        if type(value) is not int:
            if value is None:
                return None
            if isinstance(value, bool | np.bool) or not hasattr(value, "__index__"):
                raise _wrong(what, dtype, value)
            value = operator.index(value)
        if least <= value <= most:
            return value
        raise _wrong(what, dtype, value)

    return check


def _float(dtype: pl.DataType, what: str) -> Check:
    def check(value: Any) -> Any:  # noqa: ANN401  the user's own
        if type(value) is float or value is None:
            return value
        return _number(dtype, what, value)

    return check


def _number(dtype: pl.DataType, what: str, value: Any) -> float:  # noqa: ANN401  the user's own
    if isinstance(value, bool | np.bool) or not isinstance(value, int | float | np.number):
        raise _wrong(what, dtype, value)
    try:
        return float(value)
    except (OverflowError, TypeError) as error:
        raise _wrong(what, dtype, value) from error


def _plain(dtype: pl.DataType, what: str, take: Callable[[Any], Any]) -> Check:
    def check(value: Any) -> Any:  # noqa: ANN401  the user's own
        if value is None:
            return None
        try:
            taken = take(value)
        except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
            raise _wrong(what, dtype, value) from error
        if taken is None:
            raise _wrong(what, dtype, value)
        return taken

    return check


def _text(value: Any) -> str | None:  # noqa: ANN401  the user's own
    if not isinstance(value, str):
        return None
    if not value.isascii():
        value.encode()  # half of a surrogate pair is no text
    return str(value)


def _truth(value: Any) -> bool | None:  # noqa: ANN401  the user's own
    return bool(value) if isinstance(value, bool | np.bool) else None


def _bytes(value: Any) -> bytes | None:  # noqa: ANN401  the user's own
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None


def _day(value: Any) -> date | None:  # noqa: ANN401  the user's own
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _moment(value: Any) -> datetime | None:  # noqa: ANN401  the user's own
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _narrow(value: Any) -> float:  # noqa: ANN401  the user's own
    return float(np.float32(_number(pl.Float32(), "", value)))


def _other(dtype: pl.DataType, what: str) -> Check:
    """Return the check of decimals and nested values, which Polars itself does."""

    def check(value: Any) -> Any:  # noqa: ANN401  the user's own
        if value is None:
            return None
        try:
            return pl.Series([value], dtype=dtype, strict=True).to_list()[0]
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OverflowError) as error:
            raise _wrong(what, dtype, value) from error

    return check
