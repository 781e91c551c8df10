"""The sketches: quantiles within their relative error, distinct counts within their standard error."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater.operators.aggregates as agg
from slackwater.operators.aggregates.combine import combine_rows, finish, merge_states

ordinary = st.floats(-1e290, 1e290).filter(lambda x: x == 0 or abs(x) > 1e-290)
quantile = st.floats(0, 1)


def states_of(aggregate: agg.Aggregate, pieces: list[list[Any]], dtype: type[pl.DataType] = pl.Float64) -> pl.DataFrame:
    frames = [pl.DataFrame({"x": pl.Series(piece, dtype=dtype)}).with_columns(k=pl.lit(1)) for piece in pieces]
    return pl.concat([combine_rows(frame, ["k"], {"out": aggregate}) for frame in frames if frame.height])


def result(aggregate: agg.Aggregate, pieces: list[list[Any]], dtype: type[pl.DataType] = pl.Float64) -> Any:  # noqa: ANN401
    merged = merge_states(states_of(aggregate, pieces, dtype), ["k"], {"out": aggregate})
    return finish(merged, {"out": aggregate})["out"].to_list()[0]


def exact(values: list[float], q: float) -> float:
    return sorted(values)[math.floor(q * (len(values) - 1))]


@given(st.lists(ordinary | st.sampled_from([math.inf, -math.inf]), min_size=1), quantile)
@pytest.mark.parametrize("error", [0.001, 0.01, 0.3])
def test_quantile_is_within_its_relative_error(error: float, values: list[float], q: float) -> None:
    found = result(agg.quantile("x", q, relative_error=error), [values])
    wanted = exact(values, q)
    assert found == wanted or abs(found - wanted) <= error * abs(wanted) * (1 + 1e-9)


@given(
    st.lists(ordinary | st.sampled_from([1.0, 2.0]), min_size=1),
    st.lists(quantile, min_size=1, max_size=4),
    st.randoms(),
)
def test_quantiles_are_the_same_to_the_bit_in_any_pieces(
    values: list[float], qs: list[float], dice: random.Random
) -> None:
    aggregate = agg.quantiles("x", qs)
    shuffled = dice.sample(values, len(values))
    cut = dice.randrange(len(values) + 1)
    assert result(aggregate, [shuffled[:cut], shuffled[cut:]]) == result(aggregate, [values])


def test_several_quantiles_are_those_taken_one_by_one() -> None:
    values = [float(number) for number in range(-50, 51)]
    qs = [0.0, 0.25, 0.5, 0.95, 1.0]
    assert result(agg.quantiles("x", qs), [values]) == [result(agg.quantile("x", q), [values]) for q in qs]


def test_quantile_of_zeros_and_infinities_is_exact() -> None:
    values = [-math.inf, 0.0, -0.0, math.inf]
    assert result(agg.quantiles("x", [0, 0.5, 1]), [values]) == [-math.inf, 0.0, math.inf]


@pytest.mark.parametrize("largest", [1.7976931348623157e308, -1.7976931348623157e308])
def test_quantile_of_the_largest_float_is_finite(largest: float) -> None:
    assert result(agg.quantile("x", 0.5), [[largest]]) == pytest.approx(largest, rel=0.01)


def test_quantile_skips_nan_and_null() -> None:
    assert result(agg.quantile("x", 0), [[math.nan, None, 8.0]]) == pytest.approx(8.0, rel=0.01)
    assert result(agg.quantile("x", 0), [[math.nan, None]]) is None
    assert result(agg.quantiles("x", [0, 1]), [[None]]) is None


def test_quantile_reads_integers_and_truths() -> None:
    assert result(agg.quantile("x", 0.5), [[100, 100, 3]], pl.Int32) == pytest.approx(100, rel=0.01)
    assert result(agg.quantile("x", 0), [[True]], pl.Boolean) == pytest.approx(1, rel=0.0101)


def test_sketch_of_many_values_stays_small() -> None:
    values = np.random.default_rng(1).lognormal(size=200_000).tolist()
    [codes] = states_of(agg.quantile("x", 0.5), [values])["__out.codes"]
    assert len(codes) < 700


@given(st.sets(st.integers(-(2**63), 2**63 - 1), max_size=40), st.integers(1, 3))
def test_distinct_count_below_k_is_exact(values: set[int], times: int) -> None:
    assert result(agg.approx_distinct("x", k=64), [[*values, None]] * times, pl.Int64) == len(values)


@pytest.mark.parametrize("k, count", [(256, 5_000), (4096, 100_000), (4096, 4_096)])
def test_distinct_count_above_k_is_within_four_standard_errors(k: int, count: int) -> None:
    keys = [f"user-{number:06d}" for number in range(count)]
    found = result(agg.approx_distinct("x", k=k), [keys[: count // 2], keys[count // 3 :]], pl.String)
    assert found == pytest.approx(count, rel=4 / math.sqrt(k - 2))


def test_distinct_sketch_is_the_same_set_in_any_pieces_and_order() -> None:
    keys = [f"user-{number}" for number in range(2_000)]
    dice = random.Random(7)
    aggregate = {"out": agg.approx_distinct("x", k=128)}
    whole = states_of(aggregate["out"], [keys], pl.String)["__out.hashes"].to_list()
    for cut in (1, 700, 1_999):
        dice.shuffle(keys)
        states = states_of(aggregate["out"], [keys[cut:], keys[:cut], keys[:50]], pl.String)
        assert merge_states(states, ["k"], aggregate)["__out.hashes"].to_list() == whole


def test_distinct_sketch_holds_no_more_than_k_hashes() -> None:
    [hashes] = states_of(agg.approx_distinct("x", k=16), [list(range(1_000))], pl.Int64)["__out.hashes"]
    assert len(hashes) == 16
