"""The sketch against a slow obvious model: every row's lateness, one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.times import FIRST_USABLE_MS, LAST_USABLE_MS, MIN_MS
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.eventtime.sketch import Ints

TIMES = st.lists(st.integers(FIRST_USABLE_MS, LAST_USABLE_MS), min_size=1, max_size=60)
NEAR = st.lists(
    st.one_of(st.integers(0, 200), st.integers(0, 100_000), st.integers(0, 10**9)).map(lambda late: 10**12 - late),
    min_size=1,
    max_size=200,
)
SHARES = st.floats(0, 1, exclude_min=True)


def lateness(times: Sequence[int], newest: int = MIN_MS) -> list[int]:
    """Return how late each row is; the model."""
    found = []
    for time in times:
        found.append(max(0, newest - time))
        newest = max(newest, time)
    return found


def sketch_of(*parts: Sequence[int] | Ints, newest: int = MIN_MS) -> LatenessSketch:
    sketch = LatenessSketch.empty()
    for times in parts:
        newest = sketch.observe(np.array(times, np.int64), newest)
    return sketch


def later_than(late: Sequence[int], milliseconds: float) -> float:
    return sum(value > milliseconds for value in late) / len(late)


@given(TIMES | NEAR, st.integers(FIRST_USABLE_MS, LAST_USABLE_MS) | st.just(MIN_MS))
def test_count_zeros_and_maximum_are_exact(times: list[int], newest: int) -> None:
    late = lateness(times, newest)
    sketch = sketch_of(times, newest=newest)
    assert (sketch.count, sketch.zeros, sketch.max_ms) == (len(late), late.count(0), max(late))


@given(TIMES, st.integers(FIRST_USABLE_MS, LAST_USABLE_MS) | st.just(MIN_MS))
def test_observing_returns_the_newest_time_of_the_partition(times: list[int], newest: int) -> None:
    after = LatenessSketch.empty().observe(np.array(times, np.int64), newest)
    assert after == max(newest, *times)


def test_observing_no_rows_changes_nothing() -> None:
    sketch = LatenessSketch.empty()
    assert sketch.observe(np.array([], np.int64), 17) == 17
    assert sketch == LatenessSketch.empty()


@given(NEAR, st.integers(0, 200))
def test_rows_in_two_goes_are_the_same_as_in_one(times: list[int], cut: int) -> None:
    assert sketch_of(times[:cut], times[cut:]) == sketch_of(times)


@given(TIMES | NEAR, SHARES)
def test_quantile_is_within_one_percent_of_the_exact_one(times: list[int], q: float) -> None:
    late = sorted(lateness(times))
    exact = late[int(q * (len(late) - 1))]
    assert abs(sketch_of(times).quantile(q) - exact) <= 0.01 * exact


@given(st.lists(st.integers(0, 127).map(lambda late: 10**12 - late), min_size=1), SHARES)
def test_quantile_below_128_ms_is_exact(times: list[int], q: float) -> None:
    late = sorted(lateness(times))
    assert sketch_of(times).quantile(q) == late[int(q * (len(late) - 1))]


@given(NEAR, st.data())
def test_share_later_than_lies_between_the_exact_shares_of_a_little_less_and_more(
    times: list[int], data: st.DataObject
) -> None:
    late = lateness(times)
    near = st.sampled_from(late).flatmap(lambda value: st.integers(value - value // 50, value + value // 50))
    milliseconds = data.draw(near | st.integers(0, 2 * 10**9))
    got = sketch_of(times).share_later_than(milliseconds)
    slack = 0.0157 * milliseconds  # a bucket is that wide
    assert later_than(late, milliseconds + slack) - 1e-9 <= got <= later_than(late, milliseconds - slack) + 1e-9


@given(NEAR)
def test_share_later_than_nothing_and_than_the_maximum_is_exact(times: list[int]) -> None:
    late, sketch = lateness(times), sketch_of(times)
    assert sketch.share_later_than(0) == later_than(late, 0)
    assert sketch.share_later_than(max(late)) == 0
    assert sketch.share_later_than(-1) == 1


@given(st.lists(st.integers(0, 127).map(lambda late: 10**12 - late), min_size=1), st.integers(-1, 130))
def test_share_later_than_less_than_128_ms_is_exact(times: list[int], milliseconds: int) -> None:
    assert sketch_of(times).share_later_than(milliseconds) == later_than(lateness(times), milliseconds)


@given(st.lists(st.integers(0, 64).map(lambda late: 10**12 - 1_000 * late), min_size=1), SHARES)
def test_lateness_of_whole_seconds_up_to_a_minute_is_exact(times: list[int], share: float) -> None:
    late, sketch = sorted(lateness(times)), sketch_of(times)
    for second in range(65):
        assert sketch.share_later_than(1_000 * second) == later_than(late, 1_000 * second)
    assert sketch.covering(share) == late[math.ceil(share * len(late)) - 1]


@given(NEAR, SHARES)
def test_covering_covers_the_share_and_hardly_more_than_that_takes(times: list[int], share: float) -> None:
    late, covering = sorted(lateness(times)), sketch_of(times).covering(share)
    assert sum(value <= covering for value in late) >= share * len(late)
    least = next(value for place, value in enumerate(late, start=1) if place >= share * len(late))
    assert covering <= least * (1 + 1 / 64)


@given(NEAR)
def test_points_of_the_curve_are_exact(times: list[int]) -> None:
    late = lateness(times)
    ends, shares = sketch_of(times).curve()
    assert shares.tolist() == [later_than(late, end) for end in ends.tolist()]


@given(st.lists(NEAR, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_merged_sketches_are_the_sketch_of_all_rows_in_whatever_order(parts: list[list[int]], dice: object) -> None:
    whole = LatenessSketch.empty()
    for times in parts:
        whole.observe(np.array(times, np.int64), MIN_MS)
    sketches = [sketch_of(times) for times in parts]
    dice.shuffle(sketches)  # type: ignore[attr-defined]
    assert LatenessSketch.merged(sketches) == whole


def test_merged_leaves_its_parts_as_they_were() -> None:
    part = sketch_of([5, 3])
    LatenessSketch.merged([part, part])
    assert part == sketch_of([5, 3])


@given(TIMES | NEAR)
def test_sketch_comes_back_from_json_as_it_was(times: list[int]) -> None:
    sketch = sketch_of(times)
    assert LatenessSketch.from_json(sketch.to_json()) == sketch


def test_json_of_a_million_rows_stays_small() -> None:
    dice = np.random.default_rng(5)
    times = 10**12 + np.arange(1_000_000) - dice.lognormal(8, 2, 1_000_000).astype(np.int64)
    text = sketch_of(times).to_json()
    assert len(text) < 16_000
    assert LatenessSketch.from_json(text).count == json.loads(text)["zeros"] + sum(json.loads(text)["counts"])


def test_many_rows_are_measured_as_the_definition_says() -> None:
    dice = np.random.default_rng(7)
    times = 10**12 + np.arange(300_000) * 3 - dice.integers(0, 5_000, 300_000)
    before = np.concatenate([[MIN_MS], np.maximum.accumulate(times)[:-1]])
    late = np.maximum(before - times, 0)
    sketch = sketch_of(times)
    assert (sketch.zeros, sketch.max_ms, sketch.count) == (int((late == 0).sum()), int(late.max()), 300_000)
    ends, shares = sketch.curve()
    for end, share in zip(ends.tolist(), shares.tolist(), strict=True):
        assert share == pytest.approx(float((late > end).mean()))


def test_sketch_of_no_rows_answers_zero() -> None:
    empty = LatenessSketch.empty()
    assert (empty.quantile(0.5), empty.quantile(1), empty.covering(0.99)) == (0, 0, 0)
    assert (empty.share_later_than(0), empty.share_later_than(-1), empty.count) == (0, 0, 0)


def test_sketch_is_no_equal_of_other_things() -> None:
    assert LatenessSketch.empty() != "a sketch"
    assert sketch_of([2, 1]) != sketch_of([3, 1])
