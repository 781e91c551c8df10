"""A position in each of many records, advanced in all of them at once.

Nothing here handles a single record: lengths and bounds are checked with masks, a broken record is noted and parked at
its end, and the others continue. Whatever the bytes, no read leaves the buffer.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from slackwater.formats.base import Flaw

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

PADDING: Final = 16
"""Bytes before the first and after the last record, so that words can be read at every position."""

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


class RecordFlaws:
    """The flaws of records; only the first flaw of a record is kept."""

    def __init__(self, starts: I64) -> None:
        self._starts = starts
        self._noted: list[tuple[I64, I64, str, str, str]] = []

    def note(self, records: I64, at: I64, reason: str, path: str, why: str) -> None:
        """Note that `records` are bad: in which field, at which positions of the buffer, and why."""
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
    """The bytes of all records, readable as bytes and, at any position, as words of eight bytes."""

    def __init__(self, records: NDArray[np.uint8]) -> None:
        self.bytes: NDArray[np.uint8] = np.zeros(len(records) + 2 * PADDING, np.uint8)
        self.bytes[PADDING:-PADDING] = records
        size = len(self.bytes) - _WORD + 1
        self.words: NDArray[np.uint64] = np.ndarray((size,), np.dtype("<u8"), self.bytes.data, strides=(1,))

    def view(self) -> memoryview:
        """Return the bytes for access to single ones."""
        return self.bytes.data


class Cursor:
    """The current position in each of some records, or of some values in them.

    `record` is the record that each place belongs to; several places may belong to one record. A place that is not
    `alive` has run into a flaw: it is parked at the end of its record, and values read there are meaningless.
    """

    def __init__(
        self, buffer: Buffer, findings: RecordFlaws, *, record: I64, position: I64, end: I64, alive: Mask | None = None
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
        """Return a cursor at some of the places; `rejoin` takes over its progress."""
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
        """Give up the places in `bad`; the flaw begins at `at`."""
        new = np.flatnonzero(bad & self.alive)
        if len(new):
            self.findings.note(self.record[new], at[new], reason, path, why)
            self.alive[new] = False
        self.position[bad] = self.end[bad]

    def doubt(self, rows: I64, at: I64, reason: str, path: str, why: str) -> None:
        """Note that the values of `rows`, which begin at `at`, are invalid; reading continues after them."""
        sound = self.alive[rows]
        self.findings.note(self.record[rows[sound]], at[sound], reason, path, why)

    def take(self, size: int | I64, path: str) -> I64:
        """Advance by `size` bytes, and return where they begin."""
        start = self.position
        self.position = start + size
        over = self.position > self.end
        if over.any():
            self.fail(over, start, "truncated", path, "it is truncated")
        return start

    def longs(self, path: str) -> I64:
        """Read a long at each place: zig-zag, seven bits per byte, at most ten bytes."""
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
        """Read an int at each place."""
        start = self.position
        value = self.longs(path)
        wide = (value > _LAST_INT) | (value < -_LAST_INT - 1)
        if wide.any():
            self.fail(wide, start, "malformed", path, "an int of more than 32 bits")
        return value

    def choices(self, count: int, path: str, kind: str) -> I64:
        """Read a number below `count` at each place; -1 where there is none."""
        start = self.position
        value = self.longs(path)
        bad = (value < 0) | (value >= count)
        if bad.any():
            self.fail(bad, start, "malformed", path, f"its type has {count} {kind}, and this is not one of them")
        value[~self.alive] = -1
        return value

    def slices(self, path: str) -> tuple[I64, I64]:
        """Read a length at each place, and return where that many bytes begin and end."""
        start = self.position
        size = self.longs(path)
        if len(size) and size.min() < 0:
            below = size < 0
            self.fail(below, start, "malformed", path, "a negative length")
            size[below] = 0
        # A length near the largest number must not make a position overflow.
        np.minimum(size, _BEYOND, out=size)
        return self.take(size, path), self.position

    def booleans(self, path: str) -> Mask:
        """Read a boolean at each place."""
        start = self.take(1, path)
        value = self.buffer.bytes[start]
        wrong = value > 1
        if wrong.any():
            self.fail(wrong, start, "malformed", path, "neither true (1) nor false (0)")
        is_true: Mask = value == 1
        return is_true

    def _varints(self) -> tuple[NDArray[np.uint64], I64, Mask | None]:
        """Return the numbers that begin here, their sizes in bytes, and which have too many bits."""
        word = self.buffer.words[self.position]
        stops = ~word & _STOPS
        own = stops ^ (stops - _ONE)  # all bits up to the first byte without a continuation bit
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
