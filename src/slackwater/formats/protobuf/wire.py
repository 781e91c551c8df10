"""Reads Protobuf's wire format at many positions at once: varints, fixed-size numbers and slices, as numpy arrays.

Nothing here checks where a record ends. A value that runs past it has an end past it, and one that cannot be read at
all ends `NOWHERE`; the caller compares the ends with the ends of the records, once for all values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]
Numbers = NDArray[np.uint64]

NOWHERE: Final = 1 << 62
"""The end of a value that cannot be read: past the end of every record."""

_PADDING: Final = 16
_MORE: Final = 0x80
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_LONGEST_SIZE: Final = 5
_MOST_BYTES: Final = (1 << 31) - 1
_LOW_32: Final = np.uint64(0xFFFFFFFF)
# The steps that join the eight 7-bit groups of a word: pairs, then fours, then all eight.
_GROUPS: Final = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)


class Wire:
    """The bytes of many records in one array."""

    def __init__(self, data: Bytes) -> None:
        self.data = np.zeros(len(data) + _PADDING, dtype=np.uint8)
        self.data[: len(data)] = data
        # The eight bytes from every position: a view, which numpy reads at any alignment.
        self._words: Numbers = np.ndarray((len(self.data) - 7,), dtype=np.dtype("<u8"), buffer=self.data, strides=(1,))

    def varints(self, at: Places) -> tuple[Numbers, Places]:
        """Return the varints at the given positions, and where each ends."""
        first = self.data[at]
        if not len(at) or first.max() < _MORE:
            return first.astype(np.uint64), at + 1
        word = self._words[at]
        last = ~word & _HIGH_BITS
        mask = last ^ (last - np.uint64(1))  # up to the first byte without a continuation bit
        values = word & mask & ~_HIGH_BITS
        for low, high, shift in _GROUPS:
            values = (values & low) | ((values & high) >> shift)
        ends = at + (np.bitwise_count(mask) >> np.uint8(3))
        long = np.flatnonzero(last == 0)
        if len(long):
            self._finish_long(at[long], long, values, ends)
        return values, ends

    def _finish_long(self, at: Places, long: NDArray[np.intp], values: Numbers, ends: Places) -> None:
        """Add the ninth and tenth byte of the varints that have them; bits beyond 64 are dropped."""
        ninth, tenth = self.data[at + 8], self.data[at + 9]
        has_tenth, has_more = ninth >= _MORE, (ninth >= _MORE) & (tenth >= _MORE)
        values[long] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        values[long] |= np.where(has_tenth, tenth, 0).astype(np.uint64) << np.uint64(63)
        ends[long] = np.where(has_more, NOWHERE, at + 9 + has_tenth)

    def fixed64(self, at: Places) -> tuple[Numbers, Places]:
        """Return the eight bytes at each position as a number, and where it ends."""
        return self._words[at], at + 8

    def fixed32(self, at: Places) -> tuple[Numbers, Places]:
        """Return the four bytes at each position as a number, and where it ends."""
        return self._words[at] & _LOW_32, at + 4

    def slices(self, at: Places) -> tuple[Places, Places]:
        """Return the start and end of the length-prefixed value at each position."""
        sizes, starts = self.varints(at)
        is_long = (starts - at > _LONGEST_SIZE) | (sizes > _MOST_BYTES)
        stops = starts + sizes.astype(np.int64)
        if is_long.any():
            stops[is_long] = NOWHERE
        return starts, stops


@dataclass(frozen=True, kw_only=True)
class Messages:
    """Many messages in one array of bytes: where each begins and ends, and which of them are doubtful.

    `doubtful` is updated as they are read. Messages are in the order of their bytes.
    """

    wire: Wire
    starts: Places
    stops: Places
    doubtful: Flags

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, starts: Places, stops: Places) -> Messages:
        """Return other messages in the same bytes, none of them doubtful."""
        return Messages(wire=self.wire, starts=starts, stops=stops, doubtful=np.zeros(len(starts), dtype=bool))
