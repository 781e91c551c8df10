"""Reads single values of many records as columns, with their checks: numbers, texts, times, decimals."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.formats.avro.cursor import I64, Cursor, Mask
from slackwater.formats.avro.resolution import AsValue
from slackwater.formats.avro.schema import Fixed, Logical
from slackwater.formats.ddl import TIMESTAMP

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S: Final = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_END_S: Final = int((datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).total_seconds()) + 86_400
_FIRST_DAY: Final = (date(1, 1, 1) - _EPOCH.date()).days
_LAST_DAY: Final = (date(9999, 12, 31) - _EPOCH.date()).days
_MICROS: Final = 1_000_000
_PER_SECOND: Final = {"millis": 1_000, "micros": _MICROS, "nanos": 1_000_000_000}
_NUMBERS: Final[dict[type[pl.DataType], type[np.number[Any]]]] = {
    pl.Int32: np.int32,
    pl.Int64: np.int64,
    pl.Float32: np.float32,
    pl.Float64: np.float64,
}
_WORD: Final = 8
_DECIMAL_BYTES: Final = 16
_LONGEST_DECIMAL: Final = 64
_LOW: Final = np.uint64(2**64 - 1)
_PIECE: Final = 32


def read_value(action: AsValue, cursor: Cursor, dtype: pl.DataType) -> pl.Series:
    """Read one value at each place as a column of the reader's type; values it cannot hold are noted as flaws."""
    if isinstance(action.writer, Fixed):
        start = cursor.take(action.writer.size, action.path)
        return _bytes(action, cursor, dtype, start, cursor.position)
    match action.writer.kind:
        case "boolean":
            return pl.Series(cursor.booleans(action.path))
        case "int" | "long" as kind:
            start = cursor.position
            return _number(
                action, cursor, dtype, start, cursor.ints(action.path) if kind == "int" else cursor.longs(action.path)
            )
        case "float":
            words = cursor.buffer.words[cursor.take(4, action.path)].astype(np.uint32)
            return pl.Series(words.view(np.float32)).cast(dtype)
        case "double":
            return pl.Series(cursor.buffer.words[cursor.take(8, action.path)].view(np.float64))
        case _:
            return _bytes(action, cursor, dtype, *cursor.slices(action.path))


def slices_of(data: NDArray[np.uint8], start: I64, stop: I64) -> pl.Series:
    """Return the bytes from each `start` to its `stop`, which must ascend from row to row, without copying."""
    # In Arrow, each value begins where the previous one ends: the gaps between the values become values too, and every
    # other value is a wanted one.
    offsets = np.empty(2 * len(start) + 1, np.int64)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = start, stop, len(data)
    pieces = pa.Array.from_buffers(
        pa.large_binary(), 2 * len(start), [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    )
    return pl.Series(pieces, dtype=pl.Binary).gather_every(2)


def texts_of(cursor: Cursor, start: I64, stop: I64, path: str) -> pl.Series:
    """Return a column of texts; those that are not UTF-8 are null, and noted as flaws."""
    if not cursor.alive.all():
        stop = np.where(cursor.alive, stop, start)
    found = slices_of(cursor.buffer.bytes, start, stop)
    try:
        return found.cast(pl.String)
    except pl.exceptions.PolarsError:
        pass
    pieces, wrong = [], []
    for at in range(0, len(found), _PIECE):
        piece = found[at : at + _PIECE]
        try:
            pieces.append(piece.cast(pl.String))
        except pl.exceptions.PolarsError:
            texts = [_decoded(each) for each in piece.to_list()]
            wrong += [at + place for place, text in enumerate(texts) if text is None]
            pieces.append(pl.Series(texts, dtype=pl.String))
    rows = np.array(wrong, np.int64)
    cursor.doubt(rows, start[rows], "invalid_utf8", path, "text that is not UTF-8")
    return pl.concat(pieces)


def _decoded(found: bytes) -> str | None:
    try:
        return found.decode()
    except UnicodeDecodeError:
        return None


def _number(action: AsValue, cursor: Cursor, dtype: pl.DataType, start: I64, value: I64) -> pl.Series:
    logical = _meaning(action)
    if logical is None or action.reader.logical is None:
        return pl.Series(value.astype(_NUMBERS[type(dtype)], copy=False))
    if logical.family == "date":
        _doubt(
            cursor, (value < _FIRST_DAY) | (value > _LAST_DAY), start, action.path, "a day outside the years 1 to 9999"
        )
        return pl.Series(value.astype(np.int32)).cast(pl.Date)
    if logical.family == "time":
        finer = _per_second(action.reader.logical) // _per_second(logical)
        return pl.Series(value * finer)
    unit = _per_second(logical)
    _doubt(
        cursor,
        (value < _FIRST_S * unit) | (value >= _END_S * unit),
        start,
        action.path,
        "a time outside the years 1 to 9999",
    )
    micros = value * (_MICROS // unit) if unit <= _MICROS else value // (unit // _MICROS)
    return pl.Series(micros).cast(TIMESTAMP)


def _meaning(action: AsValue) -> Logical | None:
    """Return a number's logical type: the writer's, if it declared one, otherwise the reader's."""
    return action.writer.logical or action.reader.logical


def _per_second(logical: Logical) -> int:
    return _PER_SECOND[logical.kind.rpartition("-")[2]]


def _doubt(cursor: Cursor, wrong: Mask, start: I64, path: str, why: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        cursor.doubt(rows, start[rows], "out_of_range", path, why)


def _bytes(action: AsValue, cursor: Cursor, dtype: pl.DataType, start: I64, stop: I64) -> pl.Series:
    logical = action.reader.logical
    if isinstance(dtype, pl.Decimal):
        return _decimals(action, cursor, dtype, start, stop)
    if logical is not None and logical.kind == "uuid" and isinstance(action.reader, Fixed):
        return _uuids(slices_of(cursor.buffer.bytes, start, stop))
    if isinstance(dtype, pl.String):
        return texts_of(cursor, start, stop, action.path)
    return slices_of(cursor.buffer.bytes, start, stop)


def _uuids(found: pl.Series) -> pl.Series:
    digits = found.bin.encode("hex").alias("uuid").to_frame()
    cuts = ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))
    parts = [pl.col("uuid").str.slice(begin, length) for begin, length in cuts]
    return digits.select(pl.concat_str(parts, separator="-")).to_series()


def _decimals(action: AsValue, cursor: Cursor, dtype: pl.Decimal, start: I64, stop: I64) -> pl.Series:
    """Read big-endian numbers of any length as sixteen-byte decimals."""
    data, words = cursor.buffer.bytes, cursor.buffer.words
    size = stop - start
    negative = (data[start] > np.uint8(0x7F)) & (size > 0)
    fill = np.where(negative, _LOW, np.uint64(0))
    low = words[stop - _WORD].byteswap()
    high = words[stop - 2 * _WORD].byteswap()
    low = _filled(low, fill, size)
    high = _filled(high, fill, size - _WORD)
    wrong = _beyond(high, low, negative, 10 ** (dtype.precision or 38))
    wrong |= _has_more_digits(cursor, start, size, negative)
    wrong |= (high >> np.uint64(63) == 1) != negative
    rows = np.flatnonzero(wrong)
    if len(rows):
        shown = f"decimal({dtype.precision},{dtype.scale})"
        cursor.doubt(rows, start[rows], "out_of_range", action.path, f"more digits than {shown} has")
        high[rows] = low[rows] = 0
    none = np.flatnonzero(size == 0)
    if len(none):
        cursor.doubt(none, start[none], "malformed", action.path, "an empty decimal")
    both = np.column_stack([low, high]).reshape(-1)
    kind = pa.decimal128(dtype.precision or 38, dtype.scale)
    return pl.Series(pa.Array.from_buffers(kind, len(size), [None, pa.py_buffer(both.data)]))


def _filled(word: NDArray[np.uint64], fill: NDArray[np.uint64], size: I64) -> NDArray[np.uint64]:
    """Return `word` with all but its last `size` bytes replaced by those of `fill`."""
    own = np.clip(size, 0, _WORD).astype(np.uint64) << np.uint64(3)
    # A shift by all 64 bits has no effect on some machines, hence two steps.
    before: NDArray[np.uint64] = (_LOW << (own >> np.uint64(1))) << (own - (own >> np.uint64(1)))
    filled: NDArray[np.uint64] = (word & ~before) | (fill & before)
    return filled


def _beyond(high: NDArray[np.uint64], low: NDArray[np.uint64], negative: Mask, limit: int) -> Mask:
    """Return which two-word numbers have a magnitude of at least `limit`."""
    low = np.where(negative, ~low + np.uint64(1), low)
    high = np.where(negative, ~high + (low == 0).astype(np.uint64), high)
    most_high, most_low = np.uint64(limit >> 64), np.uint64(limit & (2**64 - 1))
    beyond: Mask = (high > most_high) | ((high == most_high) & (low >= most_low))
    return beyond


def _has_more_digits(cursor: Cursor, start: I64, size: I64, negative: Mask) -> Mask:
    """Return which numbers have bytes before the last sixteen that are not just the sign."""
    wrong = size > _LONGEST_DECIMAL
    long = np.flatnonzero((size > _DECIMAL_BYTES) & ~wrong)
    if len(long):
        sign = np.where(negative[long], 0xFF, 0).astype(np.uint8)
        for place in range(int(size[long].max()) - _DECIMAL_BYTES):
            extra = place < size[long] - _DECIMAL_BYTES
            wrong[long] |= extra & (cursor.buffer.bytes[start[long] + place] != sign)
    return wrong
