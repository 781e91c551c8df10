"""Matching: finds the rows of two frames with equal keys and times within bounds, without comparing all pairs.

1. Time is divided into slots as wide as the distance of the bounds, so the partners of a row are in one or two slots.
2. Rows are joined by a 64-bit word of their key's hash and their slot. The cost of a hot key depends on its matches.
3. Words of different keys may be equal, and slots do not follow the bounds exactly, so each pair is checked by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.ground.stable_hash import hash_columns

MOST_PAIRS: Final = 1 << 20
"""The most candidate pairs that are checked at a time."""
_SLOT: Final = np.uint64(0x9E3779B97F4A7C15)
"""The multiplier of slots; odd, so that different slots of a key give different words."""
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Matchable:
    """Rows with a key and a time in `__end`; rows with a null key match nothing."""

    rows: pl.DataFrame
    keys: tuple[str, ...]
    hashes: U64
    times_ms: I64
    numbers: I64 | None
    """The numbers of the rows that have a key; None if all do."""

    @classmethod
    def of(cls, rows: pl.DataFrame, keys: tuple[str, ...]) -> Matchable:
        """Return `rows` with their hashes and times."""
        numbers = None
        keyed = rows.select(*keys, "__end")
        if any(keyed[key].null_count() for key in keys):
            has_key = keyed.select(pl.all_horizontal(pl.col(keys).is_not_null())).to_series()
            numbers = has_key.arg_true().to_numpy().astype(np.int64)
            keyed = keyed.filter(has_key)
        times_ms = keyed["__end"].to_numpy()
        return cls(rows=rows, keys=keys, hashes=hash_columns(keyed, [*keys]), times_ms=times_ms, numbers=numbers)

    def __len__(self) -> int:
        return len(self.times_ms)


class Pairs(NamedTuple):
    """Pairs of a left and a right row, by their numbers."""

    ours: I64
    theirs: I64

    def where(self, is_kept: npt.NDArray[np.bool_]) -> Pairs:
        """Return the pairs for which `is_kept` is true."""
        return self if is_kept.all() else Pairs(self.ours[is_kept], self.theirs[is_kept])


def pairs(left: Matchable, right: Matchable, lower_ms: int, upper_ms: int) -> Iterator[Pairs]:
    """Yield the row numbers of all pairs with equal keys and `lower <= right time - left time <= upper`, in chunks."""
    if not len(left) or not len(right):
        return
    if len(left) <= len(right):
        near = _candidates(few=left, many=right, lower_ms=lower_ms, upper_ms=upper_ms)
        ours, theirs = near["few"].to_numpy(), near["many"].to_numpy()
    else:
        near = _candidates(few=right, many=left, lower_ms=-upper_ms, upper_ms=-lower_ms)
        ours, theirs = near["many"].to_numpy(), near["few"].to_numpy()
    for start in range(0, len(ours), MOST_PAIRS):
        some = slice(start, start + MOST_PAIRS)
        found = Pairs(ours[some], theirs[some])
        apart = right.times_ms[found.theirs] - left.times_ms[found.ours]
        found = found.where((apart >= lower_ms) & (apart <= upper_ms))
        found = _equal(left, right, Pairs(_numbered(left, found.ours), _numbered(right, found.theirs)))
        if len(found.ours):
            yield found


def _candidates(*, few: Matchable, many: Matchable, lower_ms: int, upper_ms: int) -> pl.DataFrame:
    """Return the pairs of `few` and `many` that may match: `many` is later by `lower_ms` to `upper_ms`."""
    width = upper_ms - lower_ms + 1
    first_ms, last_ms = int(many.times_ms.min()), int(many.times_ms.max())
    if last_ms - first_ms < width:
        # All rows of a key are close enough to each other to be compared.
        one, other = _words("few", few.hashes), _words("many", many.hashes)
    else:
        slots = (many.times_ms - first_ms) // width
        starts = (few.times_ms + (lower_ms - first_ms)) // width
        ends = (few.times_ms + (upper_ms - first_ms)) // width
        across = np.flatnonzero(ends > starts)
        one = pl.concat(
            [
                _words("few", _mixed(few.hashes, starts)),
                _words("few", _mixed(few.hashes[across], ends[across]), across),
            ]
        )
        other = _words("many", _mixed(many.hashes, slots))
    return other.join(one, on="word", maintain_order="left_right").select("few", "many")


def _words(name: str, words: U64, numbers: I64 | None = None) -> pl.DataFrame:
    numbers = np.arange(len(words)) if numbers is None else numbers
    return pl.DataFrame({"word": words, name: numbers.astype(np.uint32)})


def _mixed(hashes: U64, slots: I64) -> U64:
    return hashes ^ (slots.astype(np.uint64) * _SLOT)


def _equal(left: Matchable, right: Matchable, found: Pairs) -> Pairs:
    """Return the pairs whose keys are equal by value."""
    for key, other in zip(left.keys, right.keys, strict=True):
        is_equal = left.rows[key].gather(found.ours) == right.rows[other].gather(found.theirs)
        found = found.where(is_equal.to_numpy())
    return found


def _numbered(side: Matchable, rows: I64) -> I64:
    return rows if side.numbers is None else side.numbers[rows]
