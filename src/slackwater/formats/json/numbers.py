"""Converts JSON numbers exactly to declared types: integers, floating-point numbers, decimals."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any, Final

import polars as pl

from slackwater.formats.json.parsed import Huge, Real, Unfit, parse_number

Convert = Callable[[Any], Any]

_FLOAT32_OVERFLOW: Final = 3.4028235677973366e38
_LONGEST_DECIMAL: Final = 100
_FURTHEST: Final = 10**15  # an exponent out of range for every type, but not for Python
_EXACT: Final = Context(prec=2 * _LONGEST_DECIMAL)
_WIDE: Final = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
_INTEGERS: Final[dict[type[pl.DataType], tuple[int, int]]] = {
    pl.Int8: (-(2**7), 2**7 - 1),
    pl.Int16: (-(2**15), 2**15 - 1),
    pl.Int32: (-(2**31), 2**31 - 1),
    pl.Int64: (-(2**63), 2**63 - 1),
    pl.UInt8: (0, 2**8 - 1),
    pl.UInt16: (0, 2**16 - 1),
    pl.UInt32: (0, 2**32 - 1),
    pl.UInt64: (0, 2**64 - 1),
}


def number_converter(dtype: pl.DataType, *, lenient: bool) -> Convert | None:
    """Return the converter for a numeric type, or None for other types; a lenient one also accepts strings."""
    convert = _number(dtype)
    return _number_or_string(dtype, convert) if lenient and convert is not None else convert


def _number(dtype: pl.DataType) -> Convert | None:
    if isinstance(dtype, pl.Decimal):
        return _decimal(dtype)
    if isinstance(dtype, pl.Float32 | pl.Float64):
        return _real(dtype)
    return _integer(dtype) if type(dtype) in _INTEGERS else None


def _number_or_string(dtype: pl.DataType, convert: Convert) -> Convert:
    def convert_either(value: object) -> object:
        if type(value) is not str:
            return convert(value)
        number = parse_number(value)
        if number is None:
            raise Unfit("wrong_type", dtype, value)
        try:
            return convert(number)
        except Unfit as unfit:
            unfit.value = value
            raise

    return convert_either


def _integer(dtype: pl.DataType) -> Convert:
    least, most = _INTEGERS[type(dtype)]

    def convert(value: object) -> int:
        if type(value) is int:
            if least <= value <= most:
                return value
            raise Unfit("out_of_range", dtype, value)
        if type(value) is Huge:
            raise Unfit("out_of_range", dtype, value)
        if type(value) is Real:
            number = _exact(value)
            if number == number.to_integral_value() and not least <= number <= most:
                raise Unfit("out_of_range", dtype, value)
        raise Unfit("wrong_type", dtype, value)

    return convert


def _exact(number: int | str) -> Decimal:
    """Return the exact value of a JSON number; an exponent too large for Python is replaced by a smaller one."""
    try:
        return Decimal(number)
    except InvalidOperation:
        digits, _, exponent = str(number).lower().partition("e")
        return Decimal(digits).scaleb(-_FURTHEST if exponent.startswith("-") else _FURTHEST, context=_WIDE)


def _real(dtype: pl.DataType) -> Convert:
    most = _FLOAT32_OVERFLOW if isinstance(dtype, pl.Float32) else math.inf

    def convert(value: Any) -> float:  # noqa: ANN401  of parsed JSON
        if type(value) not in (int, Real, Huge):
            raise Unfit("wrong_type", dtype, value)
        number = float(value)
        if abs(number) >= most:
            raise Unfit("out_of_range", dtype, value)
        return number

    return convert


def _decimal(dtype: pl.Decimal) -> Convert:
    scale, whole_digits = dtype.scale, (dtype.precision or 38) - dtype.scale
    unit = Decimal(1).scaleb(-scale)

    def convert(value: Any) -> Decimal:  # noqa: ANN401  of parsed JSON
        if type(value) not in (int, Real, Huge):
            raise Unfit("wrong_type", dtype, value)
        if len(str(value)) > _LONGEST_DECIMAL:
            raise Unfit("out_of_range", dtype, value)
        number = _exact(value)
        if number == 0:
            return Decimal(0).quantize(unit, context=_EXACT)
        if number.adjusted() >= whole_digits or number.adjusted() < -scale:
            raise Unfit("out_of_range", dtype, value)
        fitted = number.quantize(unit, context=_EXACT)
        if fitted != number:
            raise Unfit("out_of_range", dtype, value, f"more than {scale} digits after the point")
        return fitted

    return convert
