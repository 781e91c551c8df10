"""Sets of offsets as ranges, against plain sets."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from slackwater.engine.ranges import MOST_RANGES, Ranges, ranges_of

OFFSETS = st.lists(st.lists(st.integers(0, 30), min_size=1), max_size=4)


@given(OFFSETS, st.integers(0, 30), st.integers(0, 30))
def test_what_is_missing_was_never_added(parts: list[list[int]], one: int, other: int) -> None:
    ranges, first, last = Ranges(), min(one, other), max(one, other)
    for part in parts:
        ranges.add(ranges_of(pl.Series(part)))
    missing = [offset for start, end in ranges.missing(first, last) for offset in range(start, end + 1)]
    assert missing == sorted({*range(first, last + 1)} - {offset for part in parts for offset in part})


def test_a_set_with_very_many_gaps_fills_the_smallest() -> None:
    ranges = Ranges()
    ranges.add((10 * number, 10 * number + number % 2 * 8) for number in range(3 * MOST_RANGES))
    assert len(ranges.pairs) == MOST_RANGES
    assert (ranges.pairs[0][0], ranges.pairs[-1][1]) == (0, 10 * (3 * MOST_RANGES - 1) + 8)
