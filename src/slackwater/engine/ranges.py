"""Sets of offsets as sorted ranges, both ends included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

MOST_RANGES: Final = 1_000
"""The most ranges of a set; beyond that, its smallest gaps are filled."""


@dataclass(kw_only=True)
class Ranges:
    """A set of offsets."""

    pairs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Add ranges, in any order."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted([*self.pairs, *pairs]):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        if (excess := len(joined) - MOST_RANGES) > 0:
            gaps = sorted(range(1, len(joined)), key=lambda at: joined[at][0] - joined[at - 1][1])
            filled = {*gaps[:excess]}
            starts = [at for at in range(len(joined)) if at not in filled]
            ends = [*(at - 1 for at in starts[1:]), len(joined) - 1]
            joined = [(joined[start][0], joined[end][1]) for start, end in zip(starts, ends, strict=True)]
        self.pairs = joined

    def missing(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges between two offsets that are not in the set."""
        for start, end in self.pairs:
            if start > first:
                yield first, min(start - 1, last)
            first = max(first, end + 1)
            if first > last:
                return
        yield first, last


def ranges_of(offsets: pl.Series) -> list[tuple[int, int]]:
    """Return some offsets, at least one, as ranges."""
    known = np.unique(offsets.to_numpy())
    ends = np.flatnonzero(np.diff(known) > 1)
    firsts, lasts = known[[0, *(ends + 1)]], known[[*ends, len(known) - 1]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
