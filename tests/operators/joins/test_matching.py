"""Rows that match are found, and no others, at a cost that follows what is found."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from unittest import mock

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.operators.joins import matching
from slackwater.operators.joins.matching import Matchable, Pairs, pairs

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


def candidates(left: Matchable, right: Matchable, lower_ms: int, upper_ms: int) -> list[int]:
    """Return the numbers of pairs that were formed at a time, before their keys were compared."""
    formed = []

    def equal(mine: Matchable, other: Matchable, found: Pairs) -> Pairs:
        formed.append(len(found.ours))
        return compared(mine, other, found)

    compared = matching._equal
    with mock.patch.object(matching, "_equal", equal):
        list(pairs(left, right, lower_ms, upper_ms))
    return formed


def hot(times: npt.NDArray[np.int64]) -> Matchable:
    return Matchable.of(pl.DataFrame({"key": np.zeros(len(times), np.int64), "__end": times}), ("key",))


def test_only_pairs_within_the_bounds_are_formed() -> None:
    rows = hot(np.arange(20_000))
    assert sum(candidates(rows, rows, -2, 2)) == 5 * 20_000 - 6
    # All rows are within the width of the bounds, but only one pair is within the bounds themselves.
    assert sum(candidates(hot(np.arange(5_000)), hot(np.arange(5_000) - 4_999), 0, 10_000)) == 1


def test_pairs_of_a_hot_key_are_formed_a_chunk_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(size: int) -> npt.NDArray[np.int64]:
        return np.zeros(size, np.int64)

    monkeypatch.setattr(matching, "MOST_PAIRS", 100)
    assert candidates(hot(zeros(30)), hot(zeros(30)), 0, 0) == [90] * 10  # whole rows
    assert candidates(hot(zeros(250)), hot(zeros(1)), 0, 0) == [100, 100, 50]
    # A row with more partners than a chunk.
    assert max(candidates(hot(zeros(250)), hot(zeros(300)), 0, 0)) == 100


@given(rows, rows, st.sampled_from([1, 2, 3, 7, 100]))
def test_the_order_of_pairs_does_not_depend_on_chunks(left: Rows, right: Rows, most: int) -> None:
    def found() -> list[tuple[int, int]]:
        some = [*pairs(matchable(left), matchable(right), -20, 20)]
        return [(int(mine), int(other)) for each in some for mine, other in zip(*each, strict=True)]

    with mock.patch.object(matching, "MOST_PAIRS", most):
        in_chunks = found()
    assert Counter(in_chunks) == Counter(found())
    if most >= min(len(left), len(right)):  # otherwise one row may have more partners than a chunk
        larger = 0 if len(matchable(left)) > len(matchable(right)) else 1  # rows with a null key do not count
        assert in_chunks == sorted(in_chunks, key=lambda pair: (pair[larger], pair[1 - larger]))


@given(rows, rows, st.integers(-25, 25), st.sampled_from([0, 7, 100]))
def test_hashes_are_looked_up_as_they_are_sorted(left: Rows, right: Rows, lower: int, width: int) -> None:
    def found() -> list[list[list[int]]]:
        some = [*pairs(matchable(left), matchable(right), lower, lower + width)]
        return [[each.ours.tolist(), each.theirs.tolist()] for each in some]

    with mock.patch.multiple(matching, _SMALL=0, _FEWER=0):
        looked_up = found()
    assert looked_up == found()


def test_keys_that_are_not_numbers_are_equal_to_themselves() -> None:
    frame = pl.DataFrame({"key": [float("nan"), 0.0, -0.0], "__end": [0, 0, 0]})
    both = Matchable.of(frame, ("key",))
    found = {(int(a), int(b)) for some in pairs(both, both, 0, 0) for a, b in zip(*some, strict=True)}
    assert found == {(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)}


def test_memory_does_not_follow_the_pairs_of_a_hot_key() -> None:
    """Polars' memory is visible from outside a process only: 25 million pairs took 800 MB, all at once."""
    script = """
import resource
import numpy as np, polars as pl
from slackwater.operators.joins.matching import Matchable, pairs

def hot():
    return Matchable.of(pl.DataFrame({"key": np.zeros(5_000, np.int64), "__end": np.arange(5_000)}), ("key",))

list(pairs(hot(), hot(), 0, 0))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = sum(len(some.ours) for some in pairs(hot(), hot(), -5_000, 5_000))
print(found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found, grown_mb = map(int, done.stdout.split())
    assert found == 25_000_000
    assert grown_mb < 150
