"""A 64-bit hash of columns that never changes: not between versions, machines, chunkings or Python runs.

Key groups, hash buckets and distinct-count sketches are stored in checkpoints by this hash, so a changed
hash would separate keys from their state. The tests pin literal values, which must never change.

The value is hashed, not its storage:

1. Integers, booleans, dates and times are one 64-bit word each (two's complement; larger ones wrap),
   so a column may grow from Int32 to Int64. Dates are days, times of day nanoseconds, date-times and
   durations microseconds; the nanoseconds of an incomplete microsecond are in the upper bits.
2. Floats are the bits of a Float64, with one zero and one NaN.
3. Strings and bytes are little-endian words of 8 bytes, the last one padded with zeros, and the length.
4. Lists are the hashes of their items, structs those of their fields.
5. Everything else (decimals, …) is hashed as the string that Polars casts it to.

A sequence of words is `mix(END + length * LENGTH + sum(mix(word[i] + (i + 1) * STEP)))`, a single word
`mix(word + STEP)`. Because the position is added before mixing, the words of all rows can be mixed at once
and summed per row; nothing is sequential.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_STEP: Final = 0x9E3779B97F4A7C15
_LENGTH: Final = 0xD6E8FEB86659FD93
_END: Final = np.uint64(0x9FB21C651E98DF25)
_COLUMN: Final = 0xA0761D6478BD642F
_NULL: Final = np.uint64(0x5851F42D4C957F2D)
_NAN: Final = np.uint64(0x7FF8000000000000)
_WORD: Final = (1 << 64) - 1
_FAR_MS: Final = 1 << 60
"""Times beyond this many milliseconds have no microseconds in 64 bits."""
_SHIFT: Final = "sw:"
_INLINE: Final = 12
"""Arrow keeps strings of up to 12 bytes inside their 16-byte view, padded with zeros."""
_SHORT: Final = 256
"""Longer strings are hashed with all their words at once, instead of word by word across strings."""
_BLOCK: Final = 1 << 16
"""The number of words that are mixed at a time, to stay in the processor's cache."""


def hash_columns(frame: pl.DataFrame, columns: list[str]) -> U64:
    """Return the stable hash of each row's `columns`, combined in the order given."""
    if len(columns) == 1:
        return _hash_series(frame[columns[0]])
    total = np.full(frame.height, _constant(len(columns), _LENGTH), dtype=np.uint64)
    for place, name in enumerate(columns, start=1):
        total += _mixed(_hash_series(frame[name]), _constant(place, _COLUMN))
    return _mixed(total, _END)


def hash_wide(frame: pl.DataFrame, columns: list[str]) -> tuple[U64, U64]:
    """Return 128 stable bits of each row's `columns`, as two hashes that collide independently.

    The second hashes different words: texts are shifted against the words of the first, and the columns are reversed.
    """
    shifted = frame.select(_shifted(name, frame.schema[name]).alias(name) for name in reversed(columns))
    return hash_columns(frame, columns), hash_columns(shifted, shifted.columns) ^ _END


def _shifted(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if dtype == pl.Binary:
        return pl.lit(_SHIFT.encode()) + column
    is_number = dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)
    if is_number or dtype.is_float() or dtype.is_temporal() or dtype == pl.Boolean:
        return column  # one word, and mixing is one-to-one
    return pl.lit(_SHIFT) + column.cast(pl.String)


def hash_expr(*columns: str | pl.Expr) -> pl.Expr:
    """Return an expression with the stable hash of `columns`, as UInt64; it runs in any Polars engine."""

    def hashed(rows: pl.Series) -> pl.Series:
        fields = rows.struct.unnest()
        return pl.Series(rows.name, hash_columns(fields, fields.columns), dtype=pl.UInt64)

    named = [(pl.col(c) if isinstance(c, str) else c).alias(str(place)) for place, c in enumerate(columns)]
    return pl.struct(named).map_batches(hashed, return_dtype=pl.UInt64, is_elementwise=True)


def _hash_series(series: pl.Series) -> U64:
    hashes = _hash_values(series)
    if series.null_count():
        hashes[series.is_null().to_numpy()] = _NULL
    return hashes


def _hash_values(series: pl.Series) -> U64:  # noqa: PLR0911  one for each kind of type
    """Return the hashes of `series`; those of null values are arbitrary."""
    dtype = series.dtype
    if dtype in (pl.String, pl.Binary):
        return _hash_bytes(series)
    if dtype.is_integer() or dtype.is_temporal() or dtype == pl.Boolean:
        return _mixed(_integer_words(series), np.uint64(_STEP))
    if dtype.is_float():
        return _mixed(_float_words(series), np.uint64(_STEP))
    if dtype == pl.Null:
        return np.full(len(series), _NULL)
    if isinstance(dtype, pl.Struct):
        fields = series.struct.unnest()
        return hash_columns(fields, fields.columns) if fields.width else np.full(len(series), _NULL)
    if isinstance(dtype, pl.Array):
        return _hash_lists(series.arr.to_list())
    if isinstance(dtype, pl.List):
        return _hash_lists(series)
    return _hash_bytes(series.cast(pl.String))


def _integer_words(series: pl.Series) -> U64:
    dtype = series.dtype
    if isinstance(dtype, pl.Datetime | pl.Duration):
        if dtype.time_unit == "ms":
            series = _millisecond_words(series.to_physical())
        elif dtype.time_unit == "ns":
            series = _nanosecond_words(series.to_physical())
    series = series.to_physical()
    if series.dtype in (pl.Int128, pl.UInt128):
        low = pl.col("words") & pl.lit(_WORD, dtype=series.dtype)
        series = series.to_frame("words").select(low.cast(pl.UInt64)).to_series()
    if series.dtype != pl.UInt64:
        series = series.cast(pl.Int64)
    return series.fill_null(0).to_numpy().view(np.uint64)


def _millisecond_words(milliseconds: pl.Series) -> pl.Series:
    """Return microseconds, modulo 2^64; what that loses, the upper three bits of far times, is in the lower three."""
    words = milliseconds * 1_000
    if words.len() == words.null_count() or milliseconds.is_between(-_FAR_MS, _FAR_MS - 1).all():
        return words
    return words + (((milliseconds + _FAR_MS) // (2 * _FAR_MS)) % 8)


def _nanosecond_words(nanoseconds: pl.Series) -> pl.Series:
    """Return microseconds, which take 54 bits, with the nanoseconds of an incomplete one in the bits above."""
    return nanoseconds // 1_000 + nanoseconds % 1_000 * (1 << 54)


def _float_words(series: pl.Series) -> U64:
    numbers = series.cast(pl.Float64).fill_null(0.0).to_numpy() + 0.0
    words: U64 = numbers.view(np.uint64)
    words[np.isnan(numbers)] = _NAN
    return words


def _hash_lists(series: pl.Series) -> U64:
    lengths = series.list.len().fill_null(0).to_numpy().astype(np.int64)
    items = series.list.explode(keep_nulls=False, empty_as_null=False)
    return _sums_of_words(_hash_series(items), lengths, lengths)


def _hash_bytes(series: pl.Series) -> U64:
    pieces = series.to_arrow(compat_level=pl.CompatLevel.newest())
    parts = pieces.chunks if isinstance(pieces, pa.ChunkedArray) else [pieces]
    hashes = [_hash_views(part) for part in parts]
    return hashes[0] if len(hashes) == 1 else np.concatenate([np.empty(0, np.uint64), *hashes])


def _hash_views(array: pa.Array[Any]) -> U64:
    """Hash an Arrow array of string or binary views; short values directly from the views."""
    if not len(array):
        return np.empty(0, np.uint64)
    _, buffer, *data = array.buffers()
    views = _bytes(buffer).view(np.uint32).reshape(-1, 4)[array.offset : array.offset + len(array)]
    lengths = views[:, 0]
    out = np.empty(len(array), np.uint64)
    for start in range(0, len(array), _BLOCK):
        block = slice(start, start + _BLOCK)
        first = views[block, 1].astype(np.uint64) | (views[block, 2].astype(np.uint64) << np.uint64(32))
        total = lengths[block] * np.uint64(_LENGTH)
        total += np.where(lengths[block] > 0, _mixed(first, np.uint64(_STEP)), np.uint64(0))
        second = _mixed(views[block, 3].astype(np.uint64), _constant(2, _STEP))
        total += np.where(lengths[block] > 8, second, np.uint64(0))  # noqa: PLR2004  bytes in a word
        out[block] = _mixed(total, _END)
    is_long = lengths > _INLINE
    if array.null_count:
        is_long &= array.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(is_long)
    # A stable sort of nearly sorted rows is cheap, and gives one run of rows per buffer.
    rows = rows[np.argsort(views[rows, 2], kind="stable")]
    for run in np.split(rows, np.flatnonzero(np.diff(views[rows, 2])) + 1) if len(rows) else ():
        starts, sizes = views[run, 3].astype(np.int64), lengths[run].astype(np.int64)
        out[run] = _hash_slices(_bytes(data[views[run[0], 2]]), starts, sizes)
    return out


def _bytes(buffer: Any) -> npt.NDArray[np.uint8]:  # noqa: ANN401  numpy's stubs do not know Arrow's buffers
    return np.frombuffer(buffer, dtype=np.uint8)


def _hash_slices(data: npt.NDArray[np.uint8], starts: I64, sizes: I64) -> U64:
    """Hash the slices of `data` that begin at `starts`; each is at least one word long."""
    # A view with a word starting at every byte, without a copy.
    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    out = np.empty(len(starts), np.uint64)
    is_short = sizes <= _SHORT
    for rows in _blocks(np.flatnonzero(is_short), np.ones(len(starts), np.int64)):
        out[rows] = _hash_by_place(words, starts[rows], sizes[rows])
    for rows in _blocks(np.flatnonzero(~is_short), sizes // 8):
        out[rows] = _hash_by_slice(words, starts[rows], sizes[rows])
    return out


def _blocks(rows: I64, costs: I64) -> Iterator[I64]:
    """Split `rows` into runs that cost about `_BLOCK` each and have at least one row."""
    if len(rows):
        cuts = np.flatnonzero(np.diff(np.cumsum(costs[rows]) // _BLOCK)) + 1
        yield from np.split(rows, cuts)


def _hash_by_place(words: U64, starts: I64, sizes: I64) -> U64:
    """Hash slices of few words each: the first words of all slices, then the second words, and so on."""
    full = (sizes - 1) // 8
    total = sizes.astype(np.uint64) * np.uint64(_LENGTH)
    for place in range(int(full.max())):
        rows: I64 | slice = slice(None) if place < full.min() else np.flatnonzero(full > place)
        total[rows] += _mixed(words[starts[rows] + 8 * place], _constant(place + 1, _STEP))
    last = (full + 1).astype(np.uint64) * np.uint64(_STEP)
    last += _last_words(words, starts, sizes)
    total += _mixed(last, np.uint64(0))
    return _mixed(total, _END)


def _hash_by_slice(words: U64, starts: I64, sizes: I64) -> U64:
    """Hash slices of many words each: all words of all slices at once."""
    counts = (sizes + 7) // 8
    positions = np.repeat(starts, counts) + 8 * _places(counts)
    found = words[np.minimum(positions, len(words) - 1)]
    found[np.cumsum(counts) - 1] = _last_words(words, starts, sizes)
    return _sums_of_words(found, counts, sizes)


def _last_words(words: U64, starts: I64, sizes: I64) -> U64:
    """Return each slice's last word, padded with zeros: the word that ends with the slice, shifted down."""
    missing = -sizes % 8 * 8
    last: U64 = words[starts + sizes - 8] >> missing.astype(np.uint64)
    return last


def _sums_of_words(words: U64, counts: I64, lengths: I64) -> U64:
    """Hash consecutive sequences of words, `counts[i]` words for row i."""
    mixed = _mixed(words + (_places(counts) + 1).astype(np.uint64) * np.uint64(_STEP), np.uint64(0))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    ends = np.cumsum(counts)
    total = sums[ends] - sums[ends - counts]
    total += lengths.astype(np.uint64) * np.uint64(_LENGTH)
    return _mixed(total, _END)


def _places(counts: I64) -> I64:
    """Return 0, 1, …, counts[0] - 1, 0, 1, …, counts[1] - 1, …."""
    total = int(counts.sum())
    return np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)


def _constant(times: int, constant: int) -> np.uint64:
    return np.uint64(times * constant & _WORD)


def _mixed(words: U64, added: np.uint64) -> U64:
    """Return splitmix64's finalizer of `words + added`: each bit of a word reaches each bit of the result."""
    out = words + added
    spare = np.empty_like(out)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        np.right_shift(out, np.uint64(shift), out=spare)
        np.bitwise_xor(out, spare, out=out)
        np.multiply(out, np.uint64(factor), out=out)
    np.right_shift(out, np.uint64(31), out=spare)
    np.bitwise_xor(out, spare, out=out)
    return out
