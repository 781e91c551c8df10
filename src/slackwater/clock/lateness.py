"""How late the rows of a stream are, measured: a sketch that is cheap to fill, to send and to merge.

The lateness of a row is how far its event time lies behind the largest event time that was seen before
it in its own partition, in order of arrival; it is 0 for a row that is the newest so far. An
out-of-orderness of X leaves exactly the rows with a lateness above X behind the watermark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

AHEAD_MS: Final = 600_000
"""An event that was so far ahead of the time it was received at has its time from a clock that is wrong."""
_BITS: Final = 6
_SHIFT: Final = 52 - _BITS
_BASE: Final = 1022 << _BITS
"""Where 0.5, which stands for 0, has its place: the bits of a double, down to the sixth of the mantissa."""
_OCTAVES: Final = 50
"""From 0.5 on; between the years 1 and 9999 there are fewer than 2^49 milliseconds."""
_BLOCK: Final = 1 << 16
"""Rows at a time: what is computed of so many stays in the processor's cache."""
_DAY: Final = 86_400_000
_ROUND_MS: Final = (
    *(365 * _DAY, 30 * _DAY, 10 * _DAY, _DAY, _DAY // 2, _DAY // 4),
    *(3_600_000, 1_800_000, 600_000, 300_000, 60_000),
    *(30_000, 10_000, 5_000, 1_000, 500, 100, 50, 10, 5, 1),
)


def _firsts(places: Ints) -> Ints:
    """Return the smallest whole number of milliseconds at each place, before it is divided."""
    return np.ceil(((places + _BASE) << _SHIFT).view(np.float64)).astype(np.int64)


def _roundest(firsts: Ints, lasts: Ints) -> Ints:
    """Return, for each stretch of milliseconds, the roundest duration in it."""
    found = lasts.copy()
    for unit in reversed(_ROUND_MS):
        multiple = lasts // unit * unit
        found = np.where(multiple >= firsts, multiple, found)
    return found


_FIRST_OF: Final = _firsts(np.arange(_OCTAVES << _BITS))
_LAST_OF: Final = _firsts(np.arange(_OCTAVES << _BITS) + 1) - 1
_SPLITS: Final = _roundest(_FIRST_OF, _LAST_OF)
_FIRSTS: Final = np.stack([_FIRST_OF, _SPLITS + 1], axis=1).ravel()
"""The smallest lateness in each bucket; below, the largest."""
_LASTS: Final = np.stack([_SPLITS, _LAST_OF], axis=1).ravel()


def _no_rows() -> Ints:
    return np.zeros(len(_LASTS), np.int64)


def _places(late_by_ms: Ints) -> Ints:
    """Return the bucket of each lateness; that of 0 is the first."""
    doubles = late_by_ms.astype(np.float64)
    np.maximum(doubles, 0.5, out=doubles)
    places = doubles.view(np.int64)
    places >>= _SHIFT
    places -= _BASE
    beyond = late_by_ms > _SPLITS.take(places)
    places <<= 1
    places += beyond
    return places


@dataclass(kw_only=True, eq=False)
class LatenessSketch:
    """A DDSketch of lateness in milliseconds: counted buckets, the newest rows apart, the maximum exact.

    Every power of two is divided into 64 parts of equal width, and each part at the roundest duration in
    it: people choose round durations, and clocks of whole seconds make round lateness, so that is where
    the count has to be exact. A value is known within 0.8 %, below 128 ms exactly. Which bucket it
    belongs to is read from its bits as a double: no logarithm, and the same bucket on every machine.
    Sketches of the same rows, merged in any order, are the same.
    """

    zeros: int = 0
    """Rows that were the newest of their partition when they came."""
    max_ms: int = 0
    buckets: Ints = field(default_factory=_no_rows)
    """How many rows fell into each bucket; those with a lateness of 0 are in none."""

    @classmethod
    def empty(cls) -> LatenessSketch:
        """Return a sketch of no rows."""
        return cls()

    @classmethod
    def merged(cls, sketches: Iterable[LatenessSketch]) -> LatenessSketch:
        """Return one sketch of the rows of all `sketches`, which stay as they are."""
        total = cls()
        for sketch in sketches:
            total.merge(sketch)
        return total

    @property
    def count(self) -> int:
        """How many rows were observed."""
        return self.zeros + int(self.buckets.sum())

    def observe(self, times_ms: Ints, newest_before_ms: int) -> int:
        """Add rows of one partition, by their event times in order of arrival.

        `newest_before_ms` is the largest time that the partition had before them (`MIN_MS` if none).
        Returns the largest time it has after them, which is what the next call needs.
        """
        newest_ms = newest_before_ms
        for start in range(0, len(times_ms), _BLOCK):
            times = times_ms[start : start + _BLOCK]
            late_by = np.maximum.accumulate(times)
            if newest_ms > times[0]:
                np.maximum(late_by, newest_ms, out=late_by)
            newest_ms = int(late_by[-1])
            late_by -= times
            self._count(late_by)
        return newest_ms

    def _count(self, late_by_ms: Ints) -> None:
        self.max_ms = max(self.max_ms, int(late_by_ms.max()))
        counts = np.bincount(_places(late_by_ms))
        self.zeros += int(counts[0])
        counts[0] = 0
        self.buckets[: len(counts)] += counts

    def merge(self, other: LatenessSketch) -> None:
        """Add the rows of `other`."""
        self.zeros += other.zeros
        self.max_ms = max(self.max_ms, other.max_ms)
        self.buckets += other.buckets

    def quantile(self, q: float) -> int:
        """Return the lateness in milliseconds at rank floor(q * (count - 1)), from 0, within 1 %; of no rows 0."""
        first, last = self._bounds(int(q * max(self.count - 1, 0)))
        return min((first + last + 1) // 2, self.max_ms) if q < 1 else self.max_ms

    def covering(self, share: float) -> int:
        """Return a lateness that at least `share` of the rows do not exceed, and hardly more than that takes.

        `quantile` may be a little too small for that; this is the upper end of the bucket it fell into.
        """
        rank = max(0, int(np.ceil(share * self.count)) - 1)
        return min(self._bounds(rank)[1], self.max_ms)

    def _bounds(self, rank: int) -> tuple[int, int]:
        """Return the smallest and the largest lateness of the bucket in which the row of this rank is."""
        if rank < self.zeros or self.count == 0:
            return 0, 0
        place = int(np.searchsorted(np.cumsum(self.buckets), rank - self.zeros, side="right"))
        return int(_FIRSTS[place]), int(_LASTS[place])

    def rows_later_than(self, milliseconds: int) -> float:
        """Return how many rows are later than `milliseconds`.

        It is exact where a bucket ends, round durations and 0 among them; within a bucket its rows are
        taken to be spread evenly.
        """
        if milliseconds >= self.max_ms:
            return 0.0
        if milliseconds < 1:
            return float(self.count - self.zeros) if milliseconds == 0 else float(self.count)
        place = int(_places(np.array([milliseconds]))[0])
        first, last = int(_FIRSTS[place]), min(int(_LASTS[place]), self.max_ms)
        within = int(self.buckets[place]) * (last - milliseconds) / (last - first + 1)
        return within + int(self.buckets[place + 1 :].sum())

    def share_later_than(self, milliseconds: int) -> float:
        """Return the share of all rows, from 0 to 1, that are later than `milliseconds`."""
        return self.rows_later_than(milliseconds) / self.count if self.count else 0.0

    def curve(self) -> tuple[Ints, npt.NDArray[np.float64]]:
        """Return the ends of the used buckets, and the share of rows later than each: exact points, in order."""
        used = np.flatnonzero(self.buckets)
        ends = np.minimum(_LASTS[used], self.max_ms)
        beyond = self.count - self.zeros - np.cumsum(self.buckets[used])
        return ends, beyond / max(self.count, 1)

    def to_json(self) -> str:
        """Return the sketch as text that `from_json` reads; as long as the sketch has buckets in use."""
        used = np.flatnonzero(self.buckets)
        facts = {
            "zeros": self.zeros,
            "max_ms": self.max_ms,
            "gaps": np.diff(used, prepend=0).tolist(),
            "counts": self.buckets[used].tolist(),
        }
        return json.dumps(facts, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> LatenessSketch:
        """Read what `to_json` wrote."""
        facts: dict[str, Any] = json.loads(text)
        sketch = cls(zeros=facts["zeros"], max_ms=facts["max_ms"])
        sketch.buckets[np.cumsum(facts["gaps"], dtype=np.int64)] = facts["counts"]
        return sketch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatenessSketch):
            return NotImplemented
        same = self.zeros == other.zeros and self.max_ms == other.max_ms
        return same and bool((self.buckets == other.buckets).all())

    __hash__ = None  # type: ignore[assignment]  # a sketch grows
