"""Checks of single values that the user's code yields or puts into state.

A value is converted to the form that its column stores, so that a batch that reads it back sees the same value.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.base.errors import near_miss
from slackwater.formats.schemas import spark_type, whole_type
from slackwater.operators.process.failures import MisfitError

Check = Callable[[Any], Any]
"""Returns a value as its column stores it, or raises `MisfitError`; null is always accepted."""
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
    """Return the check for values of a column of type `dtype`; `what` names it in errors."""
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
        value.encode()  # fails for half of a surrogate pair
    return str(value)


def _truth(value: Any) -> bool | None:  # noqa: ANN401  the user's own
    return bool(value) if isinstance(value, bool | np.bool) else None


def _bytes(value: Any) -> bytes | None:  # noqa: ANN401  the user's own
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None


def _day(value: Any) -> date | None:  # noqa: ANN401  the user's own
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _moment(value: Any) -> datetime | None:  # noqa: ANN401  the user's own
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else None


def _narrow(value: Any) -> float | None:  # noqa: ANN401  the user's own
    number = _number(pl.Float32(), "", value)
    with np.errstate(over="ignore"):
        narrow = float(np.float32(number))
    return narrow if math.isfinite(narrow) or not math.isfinite(number) else None


def _other(dtype: pl.DataType, what: str) -> Check:
    """Return the check for decimals and nested values, which Polars does itself, except for the names of fields."""
    check_names = _names(dtype, what)

    def taken(value: Any) -> pl.Series:  # noqa: ANN401  the user's own
        if check_names is not None:
            check_names(value)
        return pl.Series([value], dtype=dtype, strict=True)

    def check(value: Any) -> Any:  # noqa: ANN401  the user's own
        if value is None:
            return None
        try:
            made = taken(value)
            if made.dtype != dtype:  # a dataclass or a named tuple, whose own field names Polars uses
                made = taken(made.to_list()[0])
            stored = made.to_list()[0]
        except MisfitError:
            raise
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OverflowError) as error:
            raise _wrong(what, dtype, value) from error
        if _is_rounded(dtype, value, stored):
            raise _wrong(what, dtype, value)
        return stored

    return check


def _is_rounded(dtype: pl.DataType, value: Any, stored: Any) -> bool:  # noqa: ANN401  the user's own
    """Return whether a decimal in `value` had more digits than its column stores; Polars would round it."""
    if value is None or stored is None:
        return False
    if isinstance(dtype, pl.Decimal):
        return bool(value != stored)
    if isinstance(dtype, pl.List):
        inner = whole_type(dtype.inner)
        return any(_is_rounded(inner, *pair) for pair in zip(value, stored, strict=True))
    if isinstance(dtype, pl.Struct) and isinstance(value, Mapping):
        fields = ((whole_type(field.dtype), field.name) for field in dtype.fields)
        return any(_is_rounded(kind, value.get(name), stored[name]) for kind, name in fields)
    return False


def _names(dtype: pl.DataType, what: str, path: str = "") -> Callable[[Any], None] | None:
    """Return a check that raises `MisfitError` for unknown fields of structs; None for types without structs.

    Polars would silently drop such a field.
    """
    if isinstance(dtype, pl.List):
        inside = _names(whole_type(dtype.inner), what, path)
        return None if inside is None else lambda values: _each(inside, values)
    if not isinstance(dtype, pl.Struct):
        return None
    known = frozenset(field.name for field in dtype.fields)
    deeper = {field.name: _names(whole_type(field.dtype), what, f"{path}{field.name}.") for field in dtype.fields}
    nested = {name: check for name, check in deeper.items() if check is not None}

    def check(value: Any) -> None:  # noqa: ANN401  the user's own
        if not isinstance(value, Mapping):
            return
        if not value.keys() <= known:
            strange = next(str(name) for name in value if name not in known)
            has = ", ".join(deeper)
            raise MisfitError(f"{what} has no field `{path}{strange}`{near_miss(strange, deeper)}; it has {has}")
        for name, check_field in nested.items():
            if (held := value.get(name)) is not None:
                check_field(held)

    return check


def _each(check: Callable[[Any], None], values: Any) -> None:  # noqa: ANN401  the user's own
    for value in values if isinstance(values, list | tuple) else ():
        check(value)
