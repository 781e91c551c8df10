"""Decodes Debezium's encodings: a whole column of numbers or strings into times, decimals or bytes.

Values are decoded in bulk where that is certain to be correct; the few others are read one by one, exactly, with the
error messages of the JSON format.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from slackwater.base.times import FIRST_USABLE_MS, LAST_USABLE_MS
from slackwater.formats.base import Flaw
from slackwater.formats.ddl import TIMESTAMP
from slackwater.formats.debezium.encodings import Encoding, RecordEncoding
from slackwater.formats.json.values import Real, Unfit, converter

Sure = tuple[pl.Series, pl.Series]
"""The values of a column, and which of them are certain."""

_PER_MILLI: Final = {"millis": 1, "micros": 1_000, "nanos": 1_000_000}
_MOST_MILLIS: Final = 10**14
_MOST_MICROS: Final = 10**17
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = date.min.toordinal() - _EPOCH_DAY
_LAST_DAY: Final = date.max.toordinal() - _EPOCH_DAY
_MOST_DIGITS: Final = 38
_DECIMAL_BYTES: Final = 16
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?")


def decoded_rows(frame: pl.DataFrame, rows: pl.Schema, reading: RecordEncoding) -> tuple[pl.DataFrame, dict[int, Flaw]]:
    """Return envelopes with `before` and `after` as declared, and the flaws of their values."""
    flaws: dict[int, Flaw] = {}
    if all(encoding.kind == "as_json" for encoding in reading.columns):
        return frame, flaws
    sides = []
    for side in ("before", "after"):
        whole = frame[side]
        columns = []
        for (name, dtype), encoding in zip(rows.items(), reading.columns, strict=True):
            column = whole.struct.field(name)
            if encoding.kind != "as_json":
                column, unfit = converted(column, encoding, dtype)
                for at, wrong in unfit.items():
                    words = wrong.within(f".{side}.{name}").words()
                    flaws.setdefault(at, Flaw(reason=wrong.reason, message=words))
            columns.append(column.alias(name))
        made = pl.DataFrame(columns).to_struct(side)
        if whole.null_count():
            made = pl.select(pl.when(whole.is_not_null()).then(made).alias(side)).to_series()
        sides.append(made)
    return frame.with_columns(sides), flaws


def converted(wire: pl.Series, encoding: Encoding, dtype: pl.DataType) -> tuple[pl.Series, dict[int, Unfit]]:
    """Convert a column to `dtype`, with null for invalid values, and return their errors by row index."""
    if wire.null_count() == len(wire):
        return _nothing(len(wire), dtype)[0], {}
    values, sure = _READ[encoding.kind](wire, encoding, dtype)
    exact: dict[int, Any] = {}
    unfit: dict[int, Unfit] = {}
    for at in (wire.is_not_null() & ~sure.fill_null(value=False)).arg_true().to_list():
        try:
            exact[at] = _read_exactly(wire[at], encoding, dtype)
        except Unfit as wrong:
            unfit[at] = wrong
    if exact or unfit:
        places = np.arange(len(wire))
        replaced = [*exact, *unfit]
        places[replaced] = len(wire) + np.arange(len(replaced))
        more = pl.Series([*exact.values(), *([None] * len(unfit))], dtype=dtype)
        values = pl.concat([values, more]).gather(places)
    return values, unfit


def _whole_unit(wire: pl.Series, per_milli: int) -> Sure:
    # Nanoseconds cover only a few centuries, all of them usable.
    first, last = max(FIRST_USABLE_MS * per_milli, -(2**63)), min(LAST_USABLE_MS * per_milli, 2**63 - 1)
    sure = wire.is_between(first, last)
    micros = wire * 1_000 if per_milli == 1 else wire // (per_milli // 1_000)
    return micros.cast(TIMESTAMP), sure


def _times(wire: pl.Series, encoding: Encoding, _: pl.DataType) -> Sure:
    return _whole_unit(wire, _PER_MILLI[encoding.kind])


def _any_times(wire: pl.Series, _: Encoding, __: pl.DataType) -> Sure:
    size = wire.clip(-(2**63) + 1).abs()
    millis, micros, nanos = (_whole_unit(wire, per_milli) for per_milli in _PER_MILLI.values())
    chosen = [
        pl.when(size < _MOST_MILLIS).then(first).when(size < _MOST_MICROS).then(second).otherwise(third)
        for first, second, third in zip(millis, micros, nanos, strict=True)
    ]
    values, sure = pl.select(chosen[0].alias("values"), chosen[1].alias("sure"))
    return values, sure


def _no_times(wire: pl.Series, _: Encoding, dtype: pl.DataType) -> Sure:
    return _nothing(len(wire), dtype)


def _days(wire: pl.Series, _: Encoding, __: pl.DataType) -> Sure:
    sure = wire.is_between(_FIRST_DAY, _LAST_DAY)
    return wire.clip(_FIRST_DAY, _LAST_DAY).cast(pl.Int32).cast(pl.Date), sure


def _bytes(wire: pl.Series, _: Encoding, __: pl.DataType) -> Sure:
    values = wire.str.decode("base64", strict=False)
    return values, values.is_not_null()


def _decimal_text(wire: pl.Series, _: Encoding, dtype: pl.DataType) -> Sure:
    assert isinstance(dtype, pl.Decimal)
    whole = (dtype.precision or _MOST_DIGITS) - dtype.scale
    fraction = rf"(?:\.[0-9]{{1,{dtype.scale}}})?" if dtype.scale else ""
    sure = wire.str.contains(rf"^-?[0-9]{{1,{whole}}}{fraction}$") if whole else wire.is_null()
    plain = wire if sure.all() else pl.select(pl.when(sure).then(wire)).to_series()
    return plain.cast(dtype), sure


def _decimal_bytes(wire: pl.Series, encoding: Encoding, dtype: pl.DataType) -> Sure:
    assert isinstance(dtype, pl.Decimal)
    return _unscaled(wire, dtype.scale if encoding.scale is None else encoding.scale, dtype)


def _decimal_scaled(wire: pl.Series, _: Encoding, dtype: pl.DataType) -> Sure:
    scales, texts = wire.struct.field("scale"), wire.struct.field("value")
    values, sure = _nothing(len(wire), dtype)
    for scale in scales.unique().drop_nulls().to_list():
        if 0 <= scale <= _MOST_DIGITS:
            here = scales == scale
            some, some_sure = _unscaled(pl.select(pl.when(here).then(texts)).to_series(), scale, dtype)
            values = pl.select(pl.when(here).then(some).otherwise(values)).to_series()
            sure = pl.select(pl.when(here).then(some_sure).otherwise(sure)).to_series()
    return values, sure


def _unscaled(wire: pl.Series, scale: int, dtype: pl.DataType) -> Sure:
    """Decode decimals from the base64 of Java's BigInteger: two's complement, big-endian."""
    if not 0 <= scale <= _MOST_DIGITS:
        return _nothing(len(wire), dtype)
    raw = wire.str.decode("base64", strict=False)
    sizes = raw.bin.size().fill_null(0).to_numpy()
    numbers = np.zeros((len(wire), _DECIMAL_BYTES), np.uint8)
    for size in range(1, _DECIMAL_BYTES):  # any number of this many bytes has less than 38 digits
        places = np.flatnonzero(sizes == size)
        if len(places):
            data = raw.gather(places).rechunk().to_arrow().buffers()[2]
            assert data is not None
            digits = np.frombuffer(memoryview(data), np.uint8)[: size * len(places)].reshape(-1, size)
            numbers[places] = np.where(digits[:, :1] > 0x7F, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004  the sign bit
            numbers[places, :size] = digits[:, ::-1]
    exact = pl.Series(
        pa.Array.from_buffers(pa.decimal128(_MOST_DIGITS, scale), len(wire), [None, pa.py_buffer(numbers.tobytes())])
    )
    values = exact.cast(dtype, strict=False)
    # A value that does not fit is null after the first cast; a rounded one differs after the second.
    kept = values.cast(exact.dtype, strict=False) == exact
    sure = pl.Series((sizes > 0) & (sizes < _DECIMAL_BYTES)) & kept
    return pl.select(pl.when(sure).then(values)).to_series(), sure


def _nothing(height: int, dtype: pl.DataType) -> Sure:
    values = pl.Series([None], dtype=dtype).new_from_index(0, height)
    return values, pl.repeat(value=False, n=height, eager=True)


_READ: Final[dict[str, Callable[[pl.Series, Encoding, pl.DataType], Sure]]] = {
    "any_unit": _any_times,
    "base64": _bytes,
    "days": _days,
    "decimal_bytes": _decimal_bytes,
    "decimal_scaled": _decimal_scaled,
    "decimal_text": _decimal_text,
    "micros": _times,
    "millis": _times,
    "nanos": _times,
    "no_unit": _no_times,
}


def _read_exactly(value: Any, encoding: Encoding, dtype: pl.DataType) -> Any:  # noqa: ANN401  any value of a column
    """Return one value, or raise `Unfit` with the value as written in the record."""
    match encoding.kind:
        case "base64":
            return converter(dtype)(value)
        case "decimal_text":
            if _NUMBER.fullmatch(value) is None:
                raise Unfit("wrong_type", dtype, value, "not a decimal number")
            return _exact_decimal(value, dtype, value, "")
        case "decimal_bytes":
            assert isinstance(dtype, pl.Decimal)
            return _exact_unscaled(value, dtype.scale if encoding.scale is None else encoding.scale, dtype)
        case "decimal_scaled":
            return _exact_unscaled(value["value"], value["scale"], dtype)
        case "no_unit":
            raise Unfit("unknown_unit", dtype, value, 'its unit is unknown; set times="micros" or times="millis"')
        case _:
            raise Unfit("out_of_range", dtype, value, f"{encoding.kind.replace('any_unit', 'units')} since 1970")


def _exact_unscaled(text: str | None, scale: int | None, dtype: pl.DataType) -> Any:  # noqa: ANN401  a Decimal
    try:
        digits = base64.b64decode((text or "").encode(), validate=True)
    except ValueError:
        raise Unfit("wrong_type", dtype, text, "not the base64 of a decimal's digits") from None
    if not digits or scale is None:
        raise Unfit("wrong_type", dtype, text, "no digits" if text is not None else "no value")
    if len(digits) > _DECIMAL_BYTES or abs(scale) > 10 * _MOST_DIGITS:
        raise Unfit("out_of_range", dtype, text)
    number = int.from_bytes(digits, "big", signed=True)
    return _exact_decimal(f"{number}e{-scale}", dtype, text, f"{number} with {scale} digits after the point")


def _exact_decimal(number: str, dtype: pl.DataType, shown: object, why: str) -> Any:  # noqa: ANN401  a Decimal
    try:
        return converter(dtype)(Real(number))
    except Unfit as unfit:
        raise Unfit(unfit.reason, dtype, shown, why or unfit.why) from None
