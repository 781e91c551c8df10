"""The rows of many keys in order of event time, as arrays, with the lookups that a search needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Timeline:
    """Rows sorted by key, time, partition and offset; the number of a row is its position here."""

    def __init__(self, rows: pl.DataFrame, keys: Sequence[str], within_ms: int) -> None:
        self.rows = rows
        self.times: Ints = rows["__ts"].to_numpy()
        self.fits: Ints = rows["__fits"].to_numpy()
        """The steps whose own condition the row meets, as a bit mask."""
        self.key_numbers: Ints = rows.select(pl.struct(keys).rle_id()).to_series().to_numpy().astype(np.int64)
        # Ranks of times are small, so a key and a rank fit into one number; a key and a time would not.
        known = np.sort(self.times)
        self._known = known[np.append(known[:-1] != known[1:], np.ones(min(len(known), 1), bool))]
        self._places = self._place(self.key_numbers, self.times)
        self.reach = self.first_from(np.arange(len(self.times)), self.times + within_ms + 1) - 1
        """For each row, the last row of its key that a match from it may include."""
        self._chains: dict[int, Ints] = {}
        self._breaks: dict[tuple[int, int], Ints] = {}

    def first_from(self, row: Ints, at_ms: Ints) -> Ints:
        """Return for each of `row` the first row of its key at or after a time, or the first row after its key."""
        return np.searchsorted(self._places, self._place(self.key_numbers[row], at_ms))

    def _place(self, key: Ints, at_ms: Ints) -> Ints:
        return key * (len(self._known) + 1) + np.searchsorted(self._known, at_ms)

    def chain(self, mask: int) -> Ints:
        """Return the rows that meet a condition of `mask`, in order."""
        if mask not in self._chains:
            self._chains[mask] = np.flatnonzero((self.fits & mask) != 0)
        return self._chains[mask]

    def after(self, row: Ints, mask: int) -> Ints:
        """Return for each of `row` the first row after it that meets a condition of `mask`, or the end."""
        return _first(self.chain(mask), row, len(self.times))

    def break_after(self, row: Ints, mask: int, other: int) -> Ints:
        """Return for each of `row` the first row after it that does not meet `mask`, or does meet one of `other`."""
        key = (mask, other)
        if key not in self._breaks:
            meets = ((self.fits & mask) != 0) & ((self.fits & other) == 0)
            self._breaks[key] = np.flatnonzero(~meets)
        return _first(self._breaks[key], row, len(self.times))


def _first(among: Ints, row: Ints, end: int) -> Ints:
    return np.append(among, end)[np.searchsorted(among, row, side="right")]
