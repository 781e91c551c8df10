"""Rows that match are found, and no others, at a cost that follows what is found."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.joins import matching
from slackwater.joins.matching import Matchable, pairs

Rows = list[tuple[str | None, int]]
rows = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(-30, 30)), max_size=25)


def matchable(found: Rows) -> Matchable:
    frame = pl.DataFrame(found, schema={"key": pl.String, "__end": pl.Int64}, orient="row")
    return Matchable.of(frame, ("key",))


@given(rows, rows, st.integers(-25, 25), st.sampled_from([0, 1, 7, 100]))
def test_pairs_are_those_that_comparing_all_with_all_finds(left: Rows, right: Rows, lower: int, width: int) -> None:
    found = [
        (int(mine), int(other))
        for some in pairs(matchable(left), matchable(right), lower, lower + width)
        for mine, other in zip(*some, strict=True)
    ]
    expected = [
        (i, j)
        for i, (mine, at) in enumerate(left)
        for j, (other, then) in enumerate(right)
        if mine is not None and mine == other and lower <= then - at <= lower + width
    ]
    assert sorted(found) == expected


def test_a_hot_key_costs_what_it_matches() -> None:
    size = 20_000
    times = np.arange(size)
    hot = pl.DataFrame({"key": np.zeros(size, np.int64), "__end": times})
    near = matching._candidates(
        few=Matchable.of(hot, ("key",)), many=Matchable.of(hot, ("key",)), lower_ms=-2, upper_ms=2
    )
    assert 5 * size - 6 <= near.height < 12 * size


def test_pairs_come_in_bounded_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_PAIRS", 100)
    many = matchable([("a", 0)] * 30)
    assert [len(some.ours) for some in pairs(many, many, 0, 0)] == [100] * 9


def test_keys_that_are_not_numbers_are_equal_to_themselves() -> None:
    frame = pl.DataFrame({"key": [float("nan"), 0.0, -0.0], "__end": [0, 0, 0]})
    both = Matchable.of(frame, ("key",))
    found = {(int(a), int(b)) for some in pairs(both, both, 0, 0) for a, b in zip(*some, strict=True)}
    assert found == {(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)}
