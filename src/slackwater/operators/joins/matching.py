"""Matching: finds the rows of two frames with equal keys and times within bounds, and forms no other pairs.

1. The smaller side is sorted by the hash of its key and by time: the rows of a key are a run, in order of time.
2. Each row of the larger side finds the run of its key, and in it the range of times within the bounds.
3. The pairs of all ranges are counted, but formed only a chunk at a time: memory does not depend on how many rows a key
   has. The hashes of different keys may be equal, so each pair is checked by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.base.stable_hash import hash_columns

MOST_PAIRS: Final = 1 << 18
"""The most pairs that are formed at a time."""
_SMALL: Final = 1 << 12
"""With no more rows than this, a call of Polars costs more than the work."""
_FEWER: Final = 8
"""When one side has this many times fewer keys, looking up hashes is faster than sorting those of the other side."""
_NUMBER: Final = 0xFFFFFFFF
"""The bits of a row's number."""
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
    """Yield the row numbers of all pairs with equal keys and `lower <= right time - left time <= upper`, in chunks.

    They are in the order of the larger side's rows, and for each of them in the order of the smaller side's. Only the
    partners of a row that has more of them than a chunk are in the order of their times.
    """
    if not len(left) or not len(right):
        return
    if len(left) <= len(right):
        near = _ranges(few=left, many=right, first_ms=-upper_ms, last_ms=-lower_ms)
    else:
        near = _ranges(few=right, many=left, first_ms=lower_ms, last_ms=upper_ms)
    for few, many in _chunks(near):
        ours, theirs = (few, many) if len(left) <= len(right) else (many, few)
        found = _equal(left, right, Pairs(_numbered(left, ours), _numbered(right, theirs)))
        if len(found.ours):
            yield found


class _Ranges(NamedTuple):
    """For rows of the larger side, the ranges of their partners among the sorted rows of the smaller side."""

    order: I64
    """The numbers of the smaller side's rows, sorted by the hash of the key and by time."""
    is_in_order: bool
    """Whether the numbers of each key's rows are ascending."""
    rows: I64
    """The numbers of the larger side's rows that have partners, ascending."""
    first: I64
    counts: I64


def _ranges(*, few: Matchable, many: Matchable, first_ms: int, last_ms: int) -> _Ranges:
    """Return which rows of `few` are partners of each row of `many`: those later by `first_ms` to `last_ms`."""
    bits = max(len(many) - 1, 1).bit_length()
    order = _in_time(few.times_ms)
    prefixes, places = _sorted(few.hashes[order], bits)
    order = order[places]
    times_ms = few.times_ms[order]
    is_next = prefixes[1:] != prefixes[:-1]
    starts = np.concatenate([[0], np.flatnonzero(is_next) + 1])
    rows, run = _runs(prefixes[starts], many.hashes, bits)
    start, end, asked_ms = starts[run], np.append(starts[1:], len(order))[run], many.times_ms[rows]
    first = _search(times_ms, asked_ms + first_ms, start, end)
    counts = _search(times_ms, asked_ms + (last_ms + 1), first, end) - first
    has_partners = counts > 0
    return _Ranges(
        order=order,
        is_in_order=bool((is_next | (order[1:] > order[:-1])).all()),
        rows=rows[has_partners],
        first=first[has_partners],
        counts=counts[has_partners],
    )


def _in_time(times_ms: I64) -> I64:
    """Return the numbers of rows, sorted by time and then by number."""
    if (times_ms[1:] >= times_ms[:-1]).all():
        return np.arange(len(times_ms))
    return np.argsort(times_ms, kind="stable")


def _sorted(hashes: U64, bits: int) -> tuple[U64, I64]:
    """Return the upper bits of `hashes`, all but `bits`, sorted, and the number of each; equal ones by their numbers.

    The prefix and the number of a row fit into one word, and sorting words is several times faster than sorting rows.
    """
    numbered = (hashes >> np.uint64(bits) << np.uint64(bits)) | np.arange(len(hashes), dtype=np.uint64)
    numbered.sort()
    return numbered >> np.uint64(bits), (numbered & np.uint64((1 << bits) - 1)).astype(np.int64)


def _runs(known: U64, hashes: U64, bits: int) -> tuple[I64, I64]:
    """Return the rows whose hash has a known prefix, ascending, and where that is among the known ones, sorted."""
    if len(hashes) > max(_SMALL, _FEWER * len(known)):
        runs = pl.DataFrame({"prefix": known}).with_row_index("run")
        rows = pl.DataFrame({"prefix": hashes >> np.uint64(bits)}).with_row_index("row")
        found = rows.join(runs, on="prefix", maintain_order="left")
        return found["row"].to_numpy().astype(np.int64), found["run"].to_numpy().astype(np.int64)
    prefixes, numbers = _sorted(hashes, bits)
    places = np.minimum(np.searchsorted(known, prefixes), len(known) - 1)
    run = np.full(len(hashes), -1)
    is_known = known[places] == prefixes
    run[numbers[is_known]] = places[is_known]
    found_rows = np.flatnonzero(run >= 0)
    return found_rows, run[found_rows]


def _search(times_ms: I64, asked_ms: I64, start: I64, end: I64) -> I64:
    """Return the first place from `start` to `end` whose time is not before `asked_ms`, or `end`, for each row."""
    low, high = start.copy(), end.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) >> 1
        is_before = times_ms[middle] < asked_ms[open_]
        low[open_[is_before]] = middle[is_before] + 1
        high[open_[~is_before]] = middle[~is_before]
        open_ = open_[low[open_] < high[open_]]
    return low


def _chunks(near: _Ranges) -> Iterator[tuple[I64, I64]]:
    """Yield the pairs of all ranges: the numbers of the smaller and of the larger side's rows."""
    ends = np.cumsum(near.counts)
    start, total = 0, int(ends[-1]) if len(ends) else 0
    while start < total:
        stop = min(start + MOST_PAIRS, total)
        row, last = np.searchsorted(ends, (start, stop), side="right")
        if last > row:
            stop = int(ends[last - 1])  # whole rows, if there is one
        some = slice(row, max(last, row + 1))
        skipped = start - int(ends[row] - near.counts[row])
        first, count = near.first[some].copy(), near.counts[some].copy()
        first[0] += skipped
        count[0] = min(count[0] - skipped, stop - start)
        place = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(stop - start)
        few, many = near.order[place], np.repeat(near.rows[some], count)
        if not near.is_in_order:
            few = np.sort((many << 32) | few) & _NUMBER  # `many` is ascending, and stays as it is
        yield few, many
        start = stop


def _equal(left: Matchable, right: Matchable, found: Pairs) -> Pairs:
    """Return the pairs whose keys are equal by value."""
    for key, other in zip(left.keys, right.keys, strict=True):
        is_equal = left.rows[key].gather(found.ours) == right.rows[other].gather(found.theirs)
        found = found.where(is_equal.to_numpy())
    return found


def _numbered(side: Matchable, rows: I64) -> I64:
    return rows if side.numbers is None else side.numbers[rows]
