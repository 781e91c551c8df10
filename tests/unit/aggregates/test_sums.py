"""Sums and spreads at the edges of their types."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import slackwater.aggregates as agg
from slackwater.aggregates.combine import combine_rows, finish, merge_states
from slackwater.errors import RunError


def result(aggregate: agg.Aggregate, *pieces: pl.Series) -> Any:  # noqa: ANN401  each aggregate's own
    """The aggregate of column `x`, each series a piece."""
    many = {"out": aggregate}
    states = [combine_rows(piece.to_frame("x").with_columns(k=pl.lit(1)), ["k"], many) for piece in pieces]
    return finish(merge_states(pl.concat(states), ["k"], many), many)["out"].item()


LARGEST = 2**63 - 1


def test_sum_may_pass_the_limit_of_64_bits_and_come_back() -> None:
    there, back = pl.Series([LARGEST, LARGEST]), pl.Series([-LARGEST, -7])
    assert result(agg.sum("x"), there, back) == LARGEST - 7


@pytest.mark.parametrize(
    "values",
    [pl.Series([LARGEST, 1]), pl.Series([-LARGEST, -LARGEST]), pl.Series([2**64 - 1], dtype=pl.UInt64)],
)
def test_sum_that_does_not_fit_stops_the_job_instead_of_wrapping(values: pl.Series) -> None:
    with pytest.raises(RunError, match=rf"must fit its type Int64; got {sum(values)} for `out` = sum\(x\)") as caught:
        result(agg.sum("x"), values)
    assert caught.value.code == "SUM_OVERFLOW"


def test_sum_of_unsigned_integers_is_signed() -> None:
    assert result(agg.sum("x"), pl.Series([2**62, 5], dtype=pl.UInt64)) == 2**62 + 5


def test_sum_of_single_precision_is_added_in_double() -> None:
    assert result(agg.sum("x"), pl.Series([2.0**24, 1.0, 1.0], dtype=pl.Float32)) == 2.0**24 + 2


def test_sum_of_decimals_keeps_every_digit() -> None:
    cents = pl.Series([Decimal("0.01")] * 3 + [Decimal("10000000.00")], dtype=pl.Decimal(10, 2))
    assert result(agg.sum("x"), cents, cents) == Decimal("20000000.06")


def test_sum_of_decimals_that_does_not_fit_stops_the_job() -> None:
    huge = pl.Series([Decimal(10) ** 37] * 300, dtype=pl.Decimal(38, 0))
    with pytest.raises(RunError) as caught:
        result(agg.sum("x"), huge)
    assert caught.value.code == "SUM_OVERFLOW"


def test_infinities_of_both_signs_add_up_to_nan_in_any_order() -> None:
    plus, minus = pl.Series([math.inf, 1.0]), pl.Series([-math.inf])
    assert math.isnan(result(agg.sum("x"), plus, minus))
    assert math.isnan(result(agg.sum("x"), minus, plus))


def test_variance_of_a_small_spread_around_a_large_mean_keeps_its_digits() -> None:
    near = [1e9 + step for step in (4.0, 7.0, 13.0, 16.0)]
    assert result(agg.variance("x"), pl.Series(near[:1]), pl.Series(near[1:])) == pytest.approx(30.0, rel=1e-12)


@pytest.mark.parametrize("ddof, expected", [(0, 0.0), (1, None), (2, None)])
def test_variance_of_one_value_needs_no_degree_of_freedom(ddof: int, expected: float | None) -> None:
    assert result(agg.variance("x", ddof=ddof), pl.Series([5])) == expected


def test_mean_of_truths_is_their_share() -> None:
    assert result(agg.mean("x"), pl.Series([True, False, None]), pl.Series([True, True])) == 0.75
