"""Sums and spreads at the edges of their types."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import polars as pl
import pytest

import slackwater.operators.aggregates as agg
from slackwater.base.errors import RunError
from slackwater.operators.aggregates.combine import combine_rows, finish, merge_states


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
    "values", [pl.Series([LARGEST, 1]), pl.Series([-LARGEST, -LARGEST]), pl.Series([2**64 - 1], dtype=pl.UInt64)]
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


MOST = "9" * 38


def digits(*texts: str, scale: int = 0) -> pl.Series:
    """Return decimals of all the digits there are."""
    with localcontext(prec=80):
        values = [Decimal(text).scaleb(-scale) for text in texts]
    return pl.Series(values, dtype=pl.Decimal(38, scale))


@pytest.mark.parametrize("scale", [0, 2, 19, 38])
def test_sum_of_decimals_is_exact_though_what_is_added_on_the_way_does_not_fit(scale: int) -> None:
    values = digits(MOST, MOST, "1", f"-{MOST}", f"-{MOST}", "-3", f"-{MOST}", scale=scale)
    with localcontext(prec=80):
        expected = sum(values, Decimal(0))
    for cuts in ([7], [1] * 7, [2, 5], [3, 1, 3]):
        pieces, at = [], 0
        for size in cuts:
            pieces.append(values[at : at + size])
            at += size
        with pytest.raises(RunError, match="SUM_OVERFLOW"):
            result(agg.sum("x"), *pieces)
        pieces.append(digits("5", scale=scale))
        with localcontext(prec=80):
            assert result(agg.sum("x"), *pieces) == expected + Decimal(5).scaleb(-scale)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("pieces", [1, 2])
def test_sum_of_decimals_with_one_digit_too_many_is_named_in_any_batching(sign: str, pieces: int) -> None:
    values = [digits(f"{sign}{MOST}", scale=2), digits(f"{sign}1", scale=2)]
    values = values if pieces > 1 else [pl.concat(values)]
    with pytest.raises(RunError, match=rf"SUM_OVERFLOW.*Decimal.*38.*2.*got {sign}10{{36}}\.00 for `out`"):
        result(agg.sum("x"), *values)


def test_sum_of_wide_integers_is_exact_or_named() -> None:
    wide = pl.Series([2**126, 2**126, -(2**126), -(2**126), 7], dtype=pl.Int128)
    assert result(agg.sum("x"), wide[:2], wide[2:]) == 7
    with pytest.raises(RunError, match=rf"SUM_OVERFLOW.*got {2**127 + 7} "):
        result(agg.sum("x"), pl.Series([2**126, 2**126, 7], dtype=pl.Int128))


def test_sum_of_no_decimals_is_null() -> None:
    assert result(agg.sum("x"), pl.Series([None], dtype=pl.Decimal(10, 2))) is None


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
