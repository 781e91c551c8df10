"""A place in each of many records, moved on over all of them at once.

Nothing here looks at a single record: lengths and bounds are checked by masks, a record that breaks
off is noted and parked at its end, and the others continue. Whatever the bytes, no read leaves the buffer.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from slackwater.formats.base import Flaw

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

PADDING: Final = 16
"""Bytes before the first and after the last record, so that words may be read at every place."""

_MORE: Final = np.uint8(0x80)
_STOPS: Final = np.uint64(0x8080808080808080)
_SEVENS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_FOLDS: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_ONE: Final = np.uint64(1)
_WORD: Final = 8
_LAST_INT: Final = 2**31 - 1
_BEYOND: Final = np.int64(1 << 60)


class Findings:
    """What is wrong with which records; only the first flaw of a record is kept."""

    def __init__(self, starts: I64) -> None:
        self._starts = starts
        self._noted: list[tuple[I64, I64, str, str, str]] = []

    def note(self, records: I64, at: I64, reason: str, path: str, why: str) -> None:
        """Note that `records` are bad: in which field, at these places of the buffer, and why."""
        self._noted.append((records, at, reason, path, why))

    def flaws(self) -> dict[int, Flaw]:
        """Return the flaws by record."""
        found: dict[int, Flaw] = {}
        for records, at, reason, path, why in self._noted:
            where = f"field `{path}`, byte" if path else "byte"
            within = at - self._starts[records]
            for record, place in zip(records.tolist(), within.tolist(), strict=True):
                if record not in found:
                    found[record] = Flaw(reason=reason, message=f"{where} {place}: {why}")
        return found


class Buffer:
    """The bytes of all records, to be looked at byte by byte and, at any place, as words of eight bytes."""

    def __init__(self, records: NDArray[np.uint8]) -> None:
        self.bytes: NDArray[np.uint8] = np.zeros(len(records) + 2 * PADDING, np.uint8)
        self.bytes[PADDING:-PADDING] = records
        size = len(self.bytes) - _WORD + 1
        self.words: NDArray[np.uint64] = np.ndarray((size,), np.dtype("<u8"), self.bytes.data, strides=(1,))

    def view(self) -> memoryview:
        """Return the bytes for a look at single ones."""
        return self.bytes.data


class Cursor:
    """Where reading is in each of some records, or of some values in them.

    `record` says which record each place belongs to; several may belong to one. A place that is not
    `alive` has run into a flaw: it stands at the end of its record, and what is read there means nothing.
    """

    def __init__(
        self, buffer: Buffer, findings: Findings, *, record: I64, position: I64, end: I64, alive: Mask | None = None
    ) -> None:
        self.buffer = buffer
        self.findings = findings
        self.record = record
        self.position = position
        self.end = end
        self.alive = np.ones(len(position), np.bool_) if alive is None else alive

    def __len__(self) -> int:
        return len(self.position)

    def subset(self, rows: I64) -> Cursor:
        """Return a cursor at some of the places; `rejoin` takes over how far it came."""
        return Cursor(
            self.buffer,
            self.findings,
            record=self.record[rows],
            position=self.position[rows],
            end=self.end[rows],
            alive=self.alive[rows],
        )

    def rejoin(self, rows: I64, part: Cursor) -> None:
        """Continue from where `part`, a subset, stopped."""
        self.position[rows] = part.position
        self.alive[rows] = part.alive

    def fail(self, bad: Mask, at: I64, reason: str, path: str, why: str) -> None:
        """Give up the places in `bad`; what is wrong begins `at`."""
        new = np.flatnonzero(bad & self.alive)
        if len(new):
            self.findings.note(self.record[new], at[new], reason, path, why)
            self.alive[new] = False
        self.position[bad] = self.end[bad]

    def doubt(self, rows: I64, at: I64, reason: str, path: str, why: str) -> None:
        """Note that the values of `rows`, which begin `at`, are wrong; reading continues after them."""
        sound = self.alive[rows]
        self.findings.note(self.record[rows[sound]], at[sound], reason, path, why)

    def take(self, size: int | I64, path: str) -> I64:
        """Move on by `size` bytes, and return where they begin."""
        start = self.position
        self.position = start + size
        over = self.position > self.end
        if over.any():
            self.fail(over, start, "truncated", path, "it is truncated")
        return start

    def longs(self, path: str) -> I64:
        """Read a long everywhere: zig-zag, seven bits a byte, at most ten bytes."""
        first = self.buffer.bytes[self.position]
        if not len(first) or first.max() < _MORE:
            value = first.astype(np.uint64)
            self.take(1, path)
        else:
            value, size, overlong = self._varints()
            start = self.take(size, path)
            if overlong is not None and overlong.any():
                self.fail(overlong, start, "malformed", path, "a number of more than 64 bits")
        found: I64 = ((value >> _ONE) ^ (np.uint64(0) - (value & _ONE))).view(np.int64)
        return found

    def ints(self, path: str) -> I64:
        """Read an int everywhere."""
        start = self.position
        value = self.longs(path)
        wide = (value > _LAST_INT) | (value < -_LAST_INT - 1)
        if wide.any():
            self.fail(wide, start, "malformed", path, "an int of more than 32 bits")
        return value

    def choices(self, count: int, path: str, kind: str) -> I64:
        """Read a number below `count` everywhere; -1 where there is none."""
        start = self.position
        value = self.longs(path)
        bad = (value < 0) | (value >= count)
        if bad.any():
            self.fail(bad, start, "malformed", path, f"its type has {count} {kind}, and this is not one of them")
        value[~self.alive] = -1
        return value

    def slices(self, path: str) -> tuple[I64, I64]:
        """Read a length everywhere, and return where that many bytes begin and end."""
        start = self.position
        size = self.longs(path)
        if len(size) and size.min() < 0:
            below = size < 0
            self.fail(below, start, "malformed", path, "a negative length")
            size[below] = 0
        # A length near the largest number must not make a place run over.
        np.minimum(size, _BEYOND, out=size)
        return self.take(size, path), self.position

    def booleans(self, path: str) -> Mask:
        """Read a boolean everywhere."""
        start = self.take(1, path)
        value = self.buffer.bytes[start]
        wrong = value > 1
        if wrong.any():
            self.fail(wrong, start, "malformed", path, "neither true (1) nor false (0)")
        is_true: Mask = value == 1
        return is_true

    def _varints(self) -> tuple[NDArray[np.uint64], I64, Mask | None]:
        """Return the numbers that begin here, how many bytes they take, and which have too many bits."""
        word = self.buffer.words[self.position]
        stops = ~word & _STOPS
        own = stops ^ (stops - _ONE)  # all bits up to the first byte that has no successor
        size = (np.bitwise_count(own) >> np.uint8(3)).astype(np.int64)
        value = word & own & _SEVENS
        for low, high, shift in _FOLDS:
            value = (value & low) | ((value & high) >> shift)
        far = np.flatnonzero(stops == 0)
        if not len(far):
            return value, size, None
        rest = self.buffer.words[self.position[far] + _WORD]
        ninth, tenth = rest & np.uint64(0xFF), (rest >> np.uint64(8)) & np.uint64(0xFF)
        has_tenth = ninth > np.uint64(0x7F)
        high_bits = ((ninth & np.uint64(0x7F)) << np.uint64(56)) | np.where(has_tenth, tenth << np.uint64(63), 0)
        value[far] |= high_bits.astype(np.uint64)
        size[far] = np.where(has_tenth, 10, 9)
        overlong = np.zeros(len(value), np.bool_)
        overlong[far] = has_tenth & (tenth > _ONE)
        return value, size, overlong
