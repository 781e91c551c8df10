"""What a JSON value becomes as a declared type, one value at a time; exact, without any coercion.

A number is never read from a string, a string never from a number, an integer never from `1.0`.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final, cast

import polars as pl

from slackwater.formats.schemas import spark_type, whole_type

Convert = Callable[[Any], Any]

_EXCERPT: Final = 60
_FLOAT32_OVERFLOW: Final = 3.4028235677973366e38
_LONGEST_DECIMAL: Final = 100
_EXACT: Final = Context(prec=2 * _LONGEST_DECIMAL)
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
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it is written: keys in order, also those given twice."""

    __slots__ = ()


class Real(str):
    """A JSON number with a fraction or an exponent, as it is written."""

    __slots__ = ()


class Huge(str):
    """A JSON integer with too many digits for any declared type, as it is written."""

    __slots__ = ()


class Unfit(Exception):  # noqa: N818  not an error of the program: it never leaves the decoder
    """A value that is not of its declared type; `path` leads to it."""

    def __init__(self, reason: str, declared: pl.DataType, value: object, why: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.declared = declared
        self.value = value
        self.why = why
        self.path = ""

    def within(self, outer: str) -> Unfit:
        """Return this, one level further out: a field `.name`, an item `[3]`."""
        self.path = outer + self.path
        return self

    def words(self) -> str:
        """Return the message for the dead letter."""
        why = f" ({self.why})" if self.why else ""
        declared, got = spark_type(self.declared), _shown(self.value)
        return f"field `{self.path.lstrip('.')}` is declared {declared}; got {got}{why}"


def converter(dtype: pl.DataType) -> Convert:
    """Return the function that gives a parsed JSON value as Python value for `dtype`, or raises `Unfit`."""
    convert = _converter(dtype)
    return lambda value: None if value is None else convert(value)


def excerpt(text: str) -> str:
    """Return the beginning of `text` in one printable line."""
    return json.dumps(text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else ""), ensure_ascii=not text.isprintable())


def _converter(dtype: pl.DataType) -> Convert:
    if isinstance(dtype, pl.Struct):
        return _struct(dtype)
    if isinstance(dtype, pl.List):
        return _list(dtype)
    return _boolean if isinstance(dtype, pl.Boolean) else _number(dtype) or _text(dtype)


def _number(dtype: pl.DataType) -> Convert | None:
    if isinstance(dtype, pl.Decimal):
        return _decimal(dtype)
    if isinstance(dtype, pl.Float32 | pl.Float64):
        return _real(dtype)
    return _integer(dtype) if type(dtype) in _INTEGERS else None


def _integer(dtype: pl.DataType) -> Convert:
    least, most = _INTEGERS[type(dtype)]

    def convert(value: object) -> int:
        if type(value) is int:
            if least <= value <= most:
                return value
            raise Unfit("out_of_range", dtype, value)
        raise Unfit("out_of_range" if type(value) is Huge else "wrong_type", dtype, value)

    return convert


def _real(dtype: pl.DataType) -> Convert:
    most = _FLOAT32_OVERFLOW if isinstance(dtype, pl.Float32) else math.inf

    def convert(value: Any) -> float:  # noqa: ANN401
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

    def convert(value: Any) -> Decimal:  # noqa: ANN401
        if type(value) not in (int, Real, Huge):
            raise Unfit("wrong_type", dtype, value)
        if len(str(value)) > _LONGEST_DECIMAL:
            raise Unfit("out_of_range", dtype, value)
        number = Decimal(value)
        if number == 0:
            return Decimal(0).quantize(unit, context=_EXACT)
        if number.adjusted() >= whole_digits or number.adjusted() < -scale:
            raise Unfit("out_of_range", dtype, value)
        fitted = number.quantize(unit, context=_EXACT)
        if fitted != number:
            raise Unfit("out_of_range", dtype, value, f"more than {scale} digits after the point")
        return fitted

    return convert


def _boolean(value: object) -> bool:
    if type(value) is bool:
        return value
    raise Unfit("wrong_type", pl.Boolean(), value)


def _text(dtype: pl.DataType) -> Convert:
    """Return the converter of a type that JSON writes as a string."""
    if isinstance(dtype, pl.Datetime):
        read: Callable[[str], object] = _read_time
    elif isinstance(dtype, pl.Date):
        read = _read_date
    elif isinstance(dtype, pl.Binary):
        read = _read_base64
    else:
        read = _read_string

    def convert(value: object) -> object:
        if type(value) is not str:
            raise Unfit("wrong_type", dtype, value)
        try:
            return read(value)
        except UnicodeEncodeError:
            raise Unfit("malformed", dtype, value, "half of a surrogate pair") from None
        except OverflowError:
            raise Unfit("out_of_range", dtype, value) from None
        except ValueError as error:
            raise Unfit("wrong_type", dtype, value, str(error)) from None

    return convert


def _read_string(value: str) -> str:
    if not value.isascii():
        value.encode()
    return value


def _read_time(value: str) -> datetime:
    match = _TIME.fullmatch(value)
    if match is None:
        raise ValueError("no ISO 8601 time such as 2024-01-31T12:00:00.5Z")
    day, clock, seconds, fraction, sign, hours, minutes = match.groups()
    moment = datetime.fromisoformat(f"{day}T{clock}:{seconds or '00'}").replace(
        microsecond=int((fraction or "0").ljust(6, "0")[:6]), tzinfo=UTC
    )
    if sign is None:
        return moment
    if int(hours) > 23 or int(minutes or 0) > 59:  # noqa: PLR2004  the hours and minutes of a clock
        raise ValueError("no such offset from UTC")
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return moment - offset if sign == "+" else moment + offset


def _read_date(value: str) -> date:
    if _DATE.fullmatch(value) is None:
        raise ValueError("no ISO 8601 date such as 2024-01-31")
    return date.fromisoformat(value)


def _read_base64(value: str) -> bytes:
    if not value.isascii():
        raise ValueError("no base64")
    return base64.b64decode(value, validate=True)


def _list(dtype: pl.List) -> Convert:
    convert_item = converter(whole_type(dtype.inner))
    convert_entries = _entries(dtype) if is_map(dtype) else None

    def convert(value: object) -> list[Any]:
        if type(value) is Pairs and convert_entries is not None:
            return convert_entries(value)
        if type(value) is not list:
            raise Unfit("wrong_type", dtype, value)
        at = 0
        try:
            items = []
            for at, item in enumerate(value):  # noqa: B007  told in the message
                items.append(convert_item(item))
        except Unfit as unfit:
            raise unfit.within(f"[{at}]") from None
        return items

    return convert


def is_map(dtype: pl.List) -> bool:
    """Return whether `dtype` is what a map is declared as; its JSON may be an object, too."""
    inner = whole_type(dtype.inner)
    if not isinstance(inner, pl.Struct) or [field.name for field in inner.fields] != ["key", "value"]:
        return False
    return whole_type(inner.fields[0].dtype) == pl.String


def map_value(dtype: pl.List) -> pl.DataType:
    """Return the type of a map's values."""
    entry = cast("pl.Struct", dtype.inner)
    return whole_type(entry.fields[1].dtype)


def _entries(dtype: pl.List) -> Callable[[Pairs], list[Any]]:
    convert_value = converter(map_value(dtype))

    def convert(pairs: Pairs) -> list[Any]:
        entries = {}
        for key, value in pairs:
            if key in entries:
                raise Unfit("malformed", dtype, pairs, f"key {excerpt(key)} is given twice")
            try:
                entries[_read_string(key)] = convert_value(value)
            except Unfit as unfit:
                raise unfit.within(f".{key}") from None
            except UnicodeEncodeError:
                raise Unfit("malformed", dtype, pairs, "a key with half of a surrogate pair") from None
        return [{"key": key, "value": value} for key, value in entries.items()]

    return convert


def _struct(dtype: pl.Struct) -> Convert:
    fields = {field.name: converter(whole_type(field.dtype)) for field in dtype.fields}
    types = {field.name: whole_type(field.dtype) for field in dtype.fields}
    missing = dict.fromkeys(fields)

    def convert(value: object) -> dict[str, Any]:
        if type(value) is not Pairs:
            raise Unfit("wrong_type", dtype, value)
        found: dict[str, Any] = {}
        for key, inner in value:
            if key not in fields:
                continue
            if key in found:
                raise Unfit("malformed", types[key], inner, "the field is given twice").within(f".{key}")
            try:
                found[key] = fields[key](inner)
            except Unfit as unfit:
                raise unfit.within(f".{key}") from None
        return {**missing, **found}

    return convert


def _shown(value: object) -> str:
    """Return kind and beginning of a parsed JSON value."""
    if isinstance(value, bool):
        return f"boolean {json.dumps(value)}"
    if isinstance(value, int | Real | Huge):
        return f"number {str(value)[:_EXCERPT]}"
    if isinstance(value, str):
        return f"string {excerpt(value)}"
    if isinstance(value, Pairs):
        return f"an object of {len(value)} fields"
    if isinstance(value, list):
        return f"an array of {len(value)} items"
    return "null"
