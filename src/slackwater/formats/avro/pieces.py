"""Assembles records from pieces, each piece for all records in one step.

A step stores whole words or blocks wherever a piece begins, however short the piece: the excess is overwritten by the
next piece, and every record is followed by room for the excess of its last piece. So nothing here handles a single
record, and pieces must be stored in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.formats.avro.cursor import I64
from slackwater.formats.slices import cut

Octets = NDArray[np.uint8]
Unsigned = NDArray[np.unsignedinteger[Any]]
Sizes = I64 | int

_BLOCK: Final = 32
"""Most texts are not longer than this, and storing this many bytes takes no longer than storing eight."""
_LARGE: Final = 4096
_WORD: Final = 8
_ONE_BYTE: Final = 1 << 7
_FIRST_BITS: Final = 56
"""The bits of a number that are in the first eight bytes of its varint."""
_SPREADS: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x000000000FFFFFFF, 0x00FFFFFFF0000000, 4),
        (0x00003FFF00003FFF, 0x0FFFC0000FFFC000, 2),
        (0x007F007F007F007F, 0x3F803F803F803F80, 1),
    )
)
_MORE: Final = np.array([0x8080808080808080 & ((1 << 8 * max(size - 1, 0)) - 1) for size in range(11)], np.uint64)
"""The continuation bits of a varint, by its size."""


class Part(ABC):
    """Some bytes of each of many records; `sizes` is their number per record."""

    sizes: Sizes

    @abstractmethod
    def store(self, target: Octets, at: I64) -> None:
        """Store each record's bytes at its position, possibly with a few more after them."""

    @abstractmethod
    def spread(self, rows: I64, height: int) -> Part:
        """Return a piece of `height` records, in which `rows` have the bytes of this piece and the others have none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers(Part):
    """The lowest bytes of a number per record."""

    values: Unsigned
    sizes: Sizes

    def store(self, target: Octets, at: I64) -> None:
        """Store the numbers with all their bytes."""
        _at_every_byte(target, self.values.dtype)[at] = self.values

    def spread(self, rows: I64, height: int) -> Numbers:
        """Return the numbers at `rows`, with zeros elsewhere."""
        values = np.zeros(height, self.values.dtype)
        values[rows] = self.values
        return Numbers(values=values, sizes=_spread(self.sizes, rows, height))


@dataclass(frozen=True, kw_only=True, eq=False)
class Slices(Part):
    """Slices of a buffer; `data` extends a block beyond the last of them."""

    data: Octets
    starts: I64
    sizes: Sizes

    @classmethod
    def of(cls, data: Octets, starts: I64, sizes: Sizes) -> Slices:
        """Return slices of `data`, which is padded because it may end with the last slice."""
        longer = np.zeros(len(data) + _BLOCK, np.uint8)
        longer[: len(data)] = data
        return cls(data=longer, starts=starts, sizes=sizes)

    @classmethod
    def alike(cls, value: bytes, height: int) -> Slices:
        """Return the same bytes for all records."""
        return cls.of(np.frombuffer(value, np.uint8), np.zeros(height, np.int64), len(value))

    def store(self, target: Octets, at: I64) -> None:
        """Store full large blocks, then the rest in small ones."""
        starts, sizes = self.starts, np.broadcast_to(np.asarray(self.sizes, np.int64), at.shape)
        most = sizes.max(initial=0)
        if most >= _LARGE:
            whole = sizes // _LARGE
            _copy(self.data, starts, target, at, counts=whole, width=_LARGE)
            starts, at, sizes = starts + whole * _LARGE, at + whole * _LARGE, sizes % _LARGE
        counts = None if most <= _BLOCK else (sizes + (_BLOCK - 1)) // _BLOCK
        _copy(self.data, starts, target, at, counts=counts, width=_BLOCK)

    def spread(self, rows: I64, height: int) -> Slices:
        """Return the slices at `rows`, with empty ones elsewhere."""
        starts = np.zeros(height, np.int64)
        starts[rows] = self.starts
        return Slices(data=self.data, starts=starts, sizes=_spread(self.sizes, rows, height))


@dataclass(frozen=True, kw_only=True, eq=False)
class AssembledRecords:
    """Records in one buffer, each from its start to its stop, with gaps between them."""

    data: Octets
    starts: I64
    stops: I64

    @classmethod
    def of(cls, pieces: Sequence[Part], height: int) -> AssembledRecords:
        """Assemble `height` records from pieces."""
        sizes = np.zeros(height, np.int64)
        for piece in pieces:
            sizes += piece.sizes
        ends = np.cumsum(sizes + _BLOCK)
        starts = ends - sizes - _BLOCK
        data = np.zeros(int(ends[-1]) if height else 0, np.uint8)
        at = starts.copy()
        for piece in pieces:
            piece.store(data, at)
            at += piece.sizes
        return cls(data=data, starts=starts, stops=at)

    def packed(self) -> tuple[Octets, I64]:
        """Return the bytes of all records without gaps, and where each begins and the last one ends."""
        return _buffers(cut(self.data, self.starts, self.stops))


def bytes_of(values: pl.Series) -> tuple[Octets, I64, I64]:
    """Return the bytes of a column without nulls: one buffer, and the start and size of each value in it."""
    data, places = _buffers(values.rechunk().to_arrow())
    return data, places[:-1], np.diff(places)


def varints(numbers: I64) -> list[Part]:
    """Encode numbers as Avro varints: zig-zag, seven bits per byte."""
    folded = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    most = int(folded.max(initial=0))
    if most < _ONE_BYTE:
        return [Numbers(values=folded.astype(np.uint8), sizes=1)]
    count = np.ones(len(folded), np.uint8)
    for bits in range(7, most.bit_length(), 7):
        count += folded >= np.uint64(1 << bits)
    words = folded
    for low, high, shift in _SPREADS:
        words = (words & low) | ((words & high) << shift)
    words |= _MORE[count]
    sizes = count.astype(np.int64)
    if most.bit_length() <= _FIRST_BITS:
        return [Numbers(values=words, sizes=sizes)]
    # At most one bit is left for a tenth byte.
    rest = folded >> np.uint64(_FIRST_BITS)
    last = rest >> np.uint64(7)
    ends = (rest & np.uint64(0x7F)) | (last * np.uint64(0x180))
    return [
        Numbers(values=words, sizes=np.minimum(sizes, _WORD)),
        Numbers(values=ends.astype(np.uint16), sizes=np.maximum(sizes - _WORD, 0)),
    ]


def _copy(source: Octets, starts: I64, target: Octets, at: I64, *, counts: I64 | None, width: int) -> None:
    """Copy `counts` blocks from each start to each position, or one block if `counts` is None."""
    if counts is not None:
        rows = np.repeat(np.arange(len(counts)), counts)
        within = (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)) * width
        starts, at = starts[rows] + within, at[rows] + within
    if len(at):
        block = np.dtype((np.void, width))
        _at_every_byte(target, block)[at] = _at_every_byte(source, block)[starts]


def _at_every_byte(data: Octets, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return a view of a buffer with a number or block beginning at every byte."""
    return np.ndarray((max(len(data) - kind.itemsize + 1, 0),), kind, data.data, strides=(1,))


def _buffers(plain: pa.Array[Any]) -> tuple[Octets, I64]:
    """Return the bytes of an Arrow array's values, and where each begins and the last one ends."""
    _, offsets, data = plain.buffers()
    if offsets is None or not len(plain):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    places = np.frombuffer(memoryview(offsets), np.int64)[plain.offset : plain.offset + len(plain) + 1]
    every = np.frombuffer(b"" if data is None else memoryview(data), np.uint8)
    return every[places[0] : places[-1]], places - places[0]


def _spread(sizes: Sizes, rows: I64, height: int) -> I64:
    every = np.zeros(height, np.int64)
    every[rows] = sizes
    return every
