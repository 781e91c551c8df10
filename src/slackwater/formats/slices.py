"""Turns slices of a buffer into columns, and consecutive items into lists, without loops over values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

_WINDOW: Final = 1 << 17
"""Bytes searched at a time, which then stay in the processor's cache."""
_PREFIX, _INLINE = 4, 12


def places(data: NDArray[np.uint8], byte: int, *, most: int) -> Iterator[NDArray[np.int64]]:
    """Yield the positions of `byte` in `data`, in order, at most `most` at a time."""
    found: list[NDArray[np.int64]] = []
    count = 0
    for start in range(0, len(data), _WINDOW):
        found.append(np.flatnonzero(data[start : start + _WINDOW] == byte) + start)
        count += len(found[-1])
        if count >= most or start + _WINDOW >= len(data):
            together = np.concatenate(found)
            yield from (together[first : first + most] for first in range(0, count, most))
            found, count = [], 0


def views(data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> pl.Series:
    """Return slices of `data` as a column of views into it: nothing is copied, and `data` is kept alive.

    In Arrow's layout, a view is the size, the first four bytes, the buffer's number and the offset in it. Values of up
    to twelve bytes are stored in the view instead.
    """
    made = np.zeros((len(starts), 4), dtype=np.int32)
    made[:, 0] = sizes
    if len(data) >= _PREFIX:
        fours = np.ndarray(len(data) - _PREFIX + 1, dtype=np.int32, buffer=data.data, strides=(1,))
        made[:, 1] = fours[np.minimum(starts, len(fours) - 1)]
    made[:, 3] = starts
    short = np.flatnonzero(sizes <= _INLINE)
    if len(short):
        inline = made.view(np.uint8)
        inline[short, _PREFIX:] = 0
        for at in range(int(sizes[short].max())):
            reaching = short[sizes[short] > at]
            inline[reaching, _PREFIX + at] = data[starts[reaching] + at]
    buffers = [None, pa.py_buffer(made.data), pa.py_buffer(data.data)]
    return pl.Series(pa.Array.from_buffers(pa.binary_view(), len(starts), buffers))


def cut(data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> pa.Array[Any]:
    """Return the bytes from `starts` to `stops`, which must ascend: no slice begins before the previous one ends."""
    count = len(starts)
    if not count:
        return pa.array([], type=pa.large_binary())
    # In Arrow, each value begins where the previous one ends: the gaps between the slices become values too, and every
    # other value is a slice.
    offsets = np.empty(2 * count + 1, dtype=np.int64)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, stops, stops[-1]
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    pieces = pa.Array.from_buffers(pa.large_binary(), 2 * count, buffers)
    return pieces.take(np.arange(0, 2 * count, 2))


def listed(counts: NDArray[np.intp], items: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Group consecutive `items` into lists of type `dtype`; `counts` has the length of each list."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, type=pa.int64()), items.rechunk().to_arrow())
    return pl.Series(lists).cast(dtype)
