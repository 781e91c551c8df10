"""Aggregates that look at event time and at the order of the log."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater.operators.aggregates as agg
from slackwater.operators.aggregates.combine import combine_rows, finish, merge_states


def result(aggregate: agg.Aggregate, *pieces: list[tuple[int, str, int, Any]]) -> Any:  # noqa: ANN401
    """The aggregate of column `x`; each piece is a list of (time in ms, partition, offset, x)."""
    rows = [(*row, number) for number, piece in enumerate(pieces) for row in piece]
    frame = pl.DataFrame(rows, schema=["__ts", "__part", "__off", "x", "piece"], orient="row")
    frames = frame.with_columns(k=pl.lit(1)).partition_by("piece", include_key=False, maintain_order=True)
    states = pl.concat([combine_rows(each, ["k"], {"out": aggregate}) for each in frames])
    return finish(merge_states(states, ["k"], {"out": aggregate}), {"out": aggregate})["out"].to_list()[0]


#                    time  partition  offset  value
IN_TIME_ORDER = [(10, "p1", 3, "early"), (20, "p0", 9, "p0 9"), (20, "p1", 2, "p1 2"), (20, "p1", 4, "p1 4")]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_ties_in_time_are_broken_by_partition_and_then_by_offset(order: list[int]) -> None:
    rows = [IN_TIME_ORDER[place] for place in order]
    for pieces in ([rows], [rows[:1], rows[1:]], [[row] for row in rows]):
        assert result(agg.first("x"), *pieces) == "early"
        assert result(agg.last("x"), *pieces) == "p1 4"
        assert result(agg.collect_list("x"), *pieces) == ["early", "p0 9", "p1 2", "p1 4"]
        assert result(agg.first(pl.when(pl.col("__ts") > 10).then("x")), *pieces) == "p0 9"


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_top_gives_equal_ones_in_the_order_of_time_and_log(order: list[int]) -> None:
    rows = [IN_TIME_ORDER[place] for place in order]
    equal = agg.top(3, by=pl.lit(1), column="x")
    assert result(equal, rows) == result(equal, rows[:2], rows[2:]) == ["early", "p0 9", "p1 2"]


def test_offsets_are_compared_as_numbers_and_times_may_be_negative() -> None:
    assert result(agg.last("x"), [(-5, "p0", 9, "a")], [(-5, "p0", 10, "b")]) == "b"
    assert result(agg.first("x"), [(-5, "p0", 9, "a")], [(3, "p0", 1, "b")]) == "a"


def test_null_is_neither_first_nor_last_nor_collected() -> None:
    rows = [(1, "p0", 0, None), (2, "p0", 1, "a"), (3, "p0", 2, None)]
    assert result(agg.first("x"), rows) == result(agg.last("x"), rows) == "a"
    assert result(agg.first("x"), rows[:1], rows[1:]) == "a"
    assert result(agg.collect_list("x"), rows) == ["a"]


def test_first_and_last_take_values_of_nested_types() -> None:
    rows = [(1, "p0", 0, {"a": [1, 2]}), (2, "p0", 1, {"a": []})]
    assert result(agg.first("x"), rows[:1], rows[1:]) == {"a": [1, 2]}
    assert result(agg.last("x"), rows) == {"a": []}
    assert result(agg.collect_list("x"), rows[1:], rows[:1]) == [{"a": [1, 2]}, {"a": []}]


def test_value_one_half_life_older_weighs_half() -> None:
    rows = [(0, "p0", 0, 30.0), (60_000, "p0", 1, 60.0)]
    assert result(agg.ewma("x", half_life="1m"), rows) == pytest.approx(50.0)
    assert result(agg.ewma("x", half_life="1m"), rows[1:], rows[:1]) == pytest.approx(50.0)


def test_values_ages_apart_leave_the_latest_one() -> None:
    rows = [(0, "p0", 0, 1e9), (10**12, "p0", 1, 7.0)]
    assert result(agg.ewma("x", half_life="1ms"), rows) == 7.0
    assert result(agg.ewma("x", half_life="1ms"), rows[:1], rows[1:]) == 7.0
