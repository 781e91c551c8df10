"""Encodes decimals: big-endian integers, of as few bytes as possible or of a fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.formats.avro.outputs import FieldOutput
from slackwater.formats.avro.pieces import Numbers, Part, Slices

_BYTES: Final = 16
_BITS: Final = 64


@dataclass(frozen=True, kw_only=True)
class Decimals(FieldOutput):
    """Decimals, cast to `dtype` first; `size` is that of a fixed."""

    dtype: pl.Decimal
    size: int | None = None

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the numbers' bytes, preceded by their count unless the size is fixed."""
        low, high = _words(values.cast(self.dtype))
        written = np.column_stack([high.byteswap(), low.byteswap()]).view(np.uint8).reshape(-1, _BYTES)
        ends = np.arange(1, len(low) + 1) * _BYTES
        if self.size is None:
            sizes = _least_bytes(low, high)
            marks = Numbers(values=(2 * sizes).astype(np.uint8), sizes=1)
            return [marks, Slices.of(written.reshape(-1), ends - sizes, sizes)]
        if self.size <= _BYTES:
            return [Slices.of(written.reshape(-1), ends - self.size, self.size)]
        sign = (high.view(np.int64) >> (_BITS - 1)).astype(np.uint8)
        wide = np.repeat(sign[:, None], self.size, axis=1)
        wide[:, -_BYTES:] = written
        return [Slices.of(wide.reshape(-1), np.arange(len(low)) * self.size, self.size)]


def _words(values: pl.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the low and high half of each number."""
    plain = values.rechunk().to_arrow()
    data = plain.buffers()[1]
    words = np.frombuffer(b"" if data is None else memoryview(data), np.uint64)
    words = words[2 * plain.offset : 2 * (plain.offset + len(plain))]
    return words[::2], words[1::2]


def _least_bytes(low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of bytes that each number needs, including its sign."""
    sign = (high.view(np.int64) >> (_BITS - 1)).view(np.uint64)
    low, high = low ^ sign, high ^ sign
    sizes = np.ones(len(low), np.int64)
    for bits in range(7, 2 * _BITS - 1, 8):
        if bits < _BITS:
            sizes += (high > 0) | (low >= np.uint64(1 << bits))
        else:
            sizes += high >= np.uint64(1 << (bits - _BITS))
    return sizes
