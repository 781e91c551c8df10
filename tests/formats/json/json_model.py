"""The slow, obvious model of JSON decoding: Python's own `json`, then the declared type, value by value."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

INTEGERS = {pl.Int8: (-(2**7), 2**7), pl.Int32: (-(2**31), 2**31), pl.Int64: (-(2**63), 2**63), pl.UInt16: (0, 2**16)}


class BadError(Exception):
    """The record is no good."""


class Object(list[tuple[str, Any]]):
    """An object's pairs, in order, with those given twice."""


def expected(
    schema: pl.Schema, record: bytes, *, max_depth: int = 64, max_bytes: int = 1 << 20, lenient: bool = False
) -> dict[str, Any]:
    """Return the record's row, or raise `BadError`; `lenient` takes numbers in strings as well."""
    if len(record) > max_bytes:
        raise BadError
    try:
        parsed = json.loads(
            record.decode("utf-8"),
            object_pairs_hook=Object,
            parse_int=Decimal,
            parse_float=lambda text: ("real", text),
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError):
        raise BadError from None
    if depth(parsed) > max_depth or not isinstance(parsed, Object):
        raise BadError
    row: dict[str, Any] = fit(pl.Struct(dict(schema)), parsed, lenient=lenient)
    return row


def _refuse(_word: str) -> None:
    raise BadError


def depth(value: Any) -> int:  # noqa: ANN401
    if isinstance(value, Object):
        return 1 + max((depth(inner) for _, inner in value), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def fit(dtype: Any, value: Any, *, lenient: bool = False) -> Any:  # noqa: ANN401, C901, PLR0911, PLR0912
    if value is None:
        return None
    kind = dtype if isinstance(dtype, type) else type(dtype)
    if lenient and isinstance(value, str) and kind in (*INTEGERS, pl.Float32, pl.Float64, pl.Decimal):
        if not re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", value):
            raise BadError
        value = Decimal(value) if re.fullmatch("-?[0-9]+", value) else ("real", value)
    if kind in INTEGERS and isinstance(value, Decimal):
        least, most = INTEGERS[kind]
        if least <= value < most:
            return int(value)
    elif kind in (pl.Float32, pl.Float64) and isinstance(value, Decimal | tuple):
        number = float(value if isinstance(value, Decimal) else value[1])
        if kind is pl.Float32 and not math.isinf(number):
            number = single_precision(number)
        if not math.isinf(number):
            return number
    elif kind is pl.Decimal and isinstance(value, Decimal | tuple):
        try:
            exact = value if isinstance(value, Decimal) else Decimal(value[1])
        except InvalidOperation:
            raise BadError from None
        if len(str(exact)) < 60:
            digits = f"{exact:f}".lstrip("-").partition(".")
            if (
                len(digits[0].lstrip("0")) <= dtype.precision - dtype.scale
                and len(digits[2].rstrip("0")) <= dtype.scale
            ):
                return exact
    elif kind is pl.Boolean and isinstance(value, bool):
        return value
    elif isinstance(value, str):
        return fit_text(kind, value)
    elif kind is pl.List and type(value) is list:
        return [fit(dtype.inner, item, lenient=lenient) for item in value]
    elif kind is pl.List and type(value) is Object and str(dtype).startswith("List(Struct({'key': String, 'value'"):
        if len({key for key, _ in value}) == len(value):
            inner_type = dtype.inner.fields[1].dtype
            return [{"key": utf8(key), "value": fit(inner_type, inner, lenient=lenient)} for key, inner in value]
    elif kind is pl.Struct and type(value) is Object:
        given = [key for key, _ in value if key in {field.name for field in dtype.fields}]
        if len(set(given)) == len(given):
            return {
                field.name: fit(field.dtype, dict(value).get(field.name), lenient=lenient) for field in dtype.fields
            }
    raise BadError


def fit_text(kind: type[pl.DataType], value: str) -> Any:  # noqa: ANN401
    try:
        if kind is pl.String:
            return utf8(value)
        if kind is pl.Date and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return date.fromisoformat(value)
        if kind is pl.Binary:
            return base64.b64decode(value.encode("ascii"), validate=True)
        shape = (
            r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9:]{5}|[0-9:]{8}(?:\.[0-9]{1,9})?)(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
        )
        if kind is pl.Datetime and (match := re.fullmatch(shape, value)):
            clock = re.sub(r"(\.[0-9]{6})[0-9]*", r"\1", match[2])
            clock = re.sub(r"\.([0-9]+)", lambda part: "." + part[1].ljust(6, "0"), clock)
            return datetime.fromisoformat(f"{match[1]}T{clock}{match[3] or 'Z'}").astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadError


def utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadError from None
    return text


def single_precision(number: float) -> float:
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.inf
    return rounded
