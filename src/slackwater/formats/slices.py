"""Values that stand somewhere in a buffer as a column, and items one after the other as lists; without loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray


def cut(data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> pa.Array[Any]:
    """Return the bytes between places, which must rise: no slice begins before the last one has ended."""
    count = len(starts)
    if not count:
        return pa.array([], type=pa.large_binary())
    # Arrow wants each value to begin where the one before ends: what lies between the slices are
    # values as well, and every other value is a slice.
    offsets = np.empty(2 * count + 1, dtype=np.int64)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, stops, stops[-1]
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    pieces = pa.Array.from_buffers(pa.large_binary(), 2 * count, buffers)
    return pieces.take(np.arange(0, 2 * count, 2))


def listed(counts: NDArray[np.intp], items: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Return lists of a type, each of as many of `items` as `counts` says, one list after the other."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, type=pa.int64()), items.rechunk().to_arrow())
    return pl.Series(lists).cast(dtype)
