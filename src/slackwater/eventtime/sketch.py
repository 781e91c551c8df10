"""A sketch of durations, such as lateness and age: cheap to fill, to send and to merge."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_BITS: Final = 6
_SHIFT: Final = 52 - _BITS
_BASE: Final = 1022 << _BITS
"""The place of 0.5, which represents 0: the bits of a double, down to the sixth bit of the mantissa."""
_OCTAVES: Final = 50
"""The number of powers of two from 0.5; between the years 1 and 9999 there are fewer than 2^49 milliseconds."""
BLOCK: Final = 1 << 16
"""The number of rows processed at a time, so that intermediate results fit the processor's cache."""
_DAY: Final = 86_400_000
_ROUND_MS: Final = (
    *(365 * _DAY, 30 * _DAY, 10 * _DAY, _DAY, _DAY // 2, _DAY // 4),
    *(3_600_000, 1_800_000, 600_000, 300_000, 60_000),
    *(30_000, 10_000, 5_000, 1_000, 500, 100, 50, 10, 5, 1),
)


def _firsts(places: Ints) -> Ints:
    """Return the smallest integer of milliseconds at each place, before places are split."""
    return np.ceil(((places + _BASE) << _SHIFT).view(np.float64)).astype(np.int64)


def _roundest(firsts: Ints, lasts: Ints) -> Ints:
    """Return the roundest duration in each interval of milliseconds."""
    found = lasts.copy()
    for unit in reversed(_ROUND_MS):
        multiple = lasts // unit * unit
        found = np.where(multiple >= firsts, multiple, found)
    return found


_FIRST_OF: Final = _firsts(np.arange(_OCTAVES << _BITS))
_LAST_OF: Final = _firsts(np.arange(_OCTAVES << _BITS) + 1) - 1
_SPLITS: Final = _roundest(_FIRST_OF, _LAST_OF)
_FIRSTS: Final = np.stack([_FIRST_OF, _SPLITS + 1], axis=1).ravel()
"""The smallest value in each bucket; `_LASTS` has the largest."""
_LASTS: Final = np.stack([_SPLITS, _LAST_OF], axis=1).ravel()


def _no_rows() -> Ints:
    return np.zeros(len(_LASTS), np.int64)


def _places(values_ms: Ints) -> Ints:
    """Return the bucket of each value; values of 0 or less are in the first."""
    doubles = values_ms.astype(np.float64)
    np.maximum(doubles, 0.5, out=doubles)
    places = doubles.view(np.int64)
    places >>= _SHIFT
    places -= _BASE
    beyond = values_ms > _SPLITS.take(places)
    places <<= 1
    places += beyond
    return places


def _together(places: Ints, counts: Ints) -> tuple[list[int], list[int]]:
    """Return each place once, with the sum of its counts."""
    starts, firsts = np.unique(places, return_index=True)
    return starts.tolist(), np.add.reduceat(counts, firsts).tolist() if len(starts) else []


@dataclass(kw_only=True, eq=False)
class Sketch:
    """A DDSketch of durations in milliseconds: a histogram, with values of 0 or less counted separately.

    Every power of two is divided into 64 parts of equal width, and each part at the roundest duration in
    it: people choose round durations, and clocks of whole seconds produce them, so that is where the
    count has to be exact. A value is accurate within 0.8 %, and exact below 128 ms and for the maximum.
    The bucket of a value is read from its bits as a double: no logarithm, and the same on every machine.
    Sketches of the same values, merged in any order, are identical.
    """

    zeros: int = 0
    """The number of values of 0 or less."""
    max_ms: int = 0
    buckets: Ints = field(default_factory=_no_rows)
    """The number of values in each bucket, without those of 0 or less."""

    @classmethod
    def empty(cls) -> Self:
        """Return an empty sketch."""
        return cls()

    @classmethod
    def merged(cls, sketches: Iterable[Sketch]) -> Self:
        """Return one sketch of the rows of all `sketches`, which are not modified."""
        total = cls()
        for sketch in sketches:
            total.merge(sketch)
        return total

    @property
    def count(self) -> int:
        """The number of observed rows."""
        return self.zeros + int(self.buckets.sum())

    def add(self, value_ms: int, count: int = 1) -> None:
        """Add a value `count` times; a negative value counts as 0."""
        self.max_ms = max(self.max_ms, value_ms)
        if value_ms <= 0:
            self.zeros += count
        else:
            self.buckets[_places(np.array([value_ms]))[0]] += count

    def _count(self, values_ms: Ints, rows: int | None = None) -> None:
        """Add values, which may be a sample of `rows` rows."""
        self.max_ms = max(self.max_ms, int(values_ms.max()))
        counts = np.bincount(_places(values_ms))
        if rows is not None and rows != len(values_ms):
            counts = np.diff(np.cumsum(counts) * rows // len(values_ms), prepend=0)
        self.zeros += int(counts[0])
        counts[0] = 0
        self.buckets[: len(counts)] += counts

    def merge(self, other: Sketch) -> None:
        """Add the rows of `other`."""
        self.zeros += other.zeros
        self.max_ms = max(self.max_ms, other.max_ms)
        self.buckets += other.buckets

    def merge_json(self, text: str) -> None:
        """Add the values of a sketch written by `to_json`."""
        facts: dict[str, Any] = json.loads(text)
        self.zeros += facts["zeros"]
        self.max_ms = max(self.max_ms, facts["max_ms"])
        self.buckets[np.cumsum(facts["gaps"], dtype=np.int64)] += np.array(facts["counts"], np.int64)

    def quantile(self, q: float) -> int:
        """Return the value in milliseconds at rank floor(q * (count - 1)), from 0, within 1 %; 0 without rows."""
        first, last = self._bounds(int(q * max(self.count - 1, 0)))
        return min((first + last + 1) // 2, self.max_ms) if q < 1 else self.max_ms

    def covering(self, share: float) -> int:
        """Return a value that at least `share` of the rows do not exceed, and hardly a larger one than necessary.

        `quantile` may be slightly too small for that; this is the upper end of its bucket.
        """
        rank = max(0, int(np.ceil(share * self.count)) - 1)
        return min(self._bounds(rank)[1], self.max_ms)

    def _bounds(self, rank: int) -> tuple[int, int]:
        """Return the smallest and largest value of the bucket that contains the row of this rank."""
        if rank < self.zeros or self.count == 0:
            return 0, 0
        place = int(np.searchsorted(np.cumsum(self.buckets), rank - self.zeros, side="right"))
        return int(_FIRSTS[place]), int(_LASTS[place])

    def rows_later_than(self, milliseconds: int) -> float:
        """Return the number of rows that are later than `milliseconds`.

        It is exact at the ends of buckets, which include round durations and 0; within a bucket, rows
        are assumed to be evenly distributed.
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

    def histogram(self, most: int) -> list[tuple[int, int]]:
        """Return the sketch as at most `most` pairs (smallest value in milliseconds, count) in order.

        Adjacent buckets are joined, as few as necessary: 64, 32, 16, … per power of two, then whole powers.
        """
        used = np.flatnonzero(self.buckets)
        pairs = [(0, self.zeros)] if self.zeros else []
        for width in (1 << shift for shift in range(len(_LASTS).bit_length())):
            starts, counts = _together(used // width * width, self.buckets[used])
            if len(starts) + len(pairs) <= most:
                break
        return pairs + [(int(_FIRSTS[place]), count) for place, count in zip(starts, counts, strict=True)]

    def curve(self) -> tuple[Ints, npt.NDArray[np.float64]]:
        """Return the ends of the used buckets, and the share of rows later than each: exact points, in order."""
        used = np.flatnonzero(self.buckets)
        ends = np.minimum(_LASTS[used], self.max_ms)
        beyond = self.count - self.zeros - np.cumsum(self.buckets[used])
        return ends, beyond / max(self.count, 1)

    def to_json(self) -> str:
        """Return the sketch as text for `from_json`; its length depends on the number of used buckets."""
        used = np.flatnonzero(self.buckets)
        facts = {
            "zeros": self.zeros,
            "max_ms": self.max_ms,
            "gaps": np.diff(used, prepend=0).tolist(),
            "counts": self.buckets[used].tolist(),
        }
        return json.dumps(facts, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a sketch written by `to_json`."""
        sketch = cls()
        sketch.merge_json(text)
        return sketch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        same = self.zeros == other.zeros and self.max_ms == other.max_ms
        return same and bool((self.buckets == other.buckets).all())

    __hash__ = None  # type: ignore[assignment]  # a sketch is mutable
