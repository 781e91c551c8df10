"""Definitions that cannot be right are refused, with a code and words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

import slackwater.operators.aggregates as agg
from slackwater.base.errors import DefinitionError

SCHEMA = pl.Schema({"x": pl.Float64(), "s": pl.String(), "l": pl.List(pl.Int64()), "when": pl.Datetime("us")})


@pytest.mark.parametrize(
    "define, code, words",
    [
        (lambda: agg.quantile("x", 1.5), "QUANTILE_RANGE", "got 1.5 in quantile"),
        (lambda: agg.quantile("x", float("nan")), "QUANTILE_RANGE", "got nan"),
        (lambda: agg.quantiles("x", [0.5, -0.1]), "QUANTILE_RANGE", "got -0.1"),
        (lambda: agg.quantiles("x", []), "QUANTILES_EMPTY", "one or more quantiles"),
        (lambda: agg.quantile("x", 0.5, relative_error=0), "QUANTILE_ERROR", "got 0;"),
        (lambda: agg.quantile("x", 0.5, relative_error=1), "QUANTILE_ERROR", "below 1; got 1;"),
        (lambda: agg.quantile("x", 0.5, relative_error=1e-9), "QUANTILE_ERROR", "got 1e-09"),
        (lambda: agg.top(0, by="x"), "TOP_N", "got 0;"),
        (lambda: agg.variance("x", ddof=-1), "AGGREGATE_DDOF", "got -1;"),
        (lambda: agg.stddev("x", ddof=-1), "AGGREGATE_DDOF", r"of stddev\(x, ddof=-1\)"),
        (lambda: agg.approx_distinct("x", k=1), "APPROX_DISTINCT_K", "an integer of at least 16; got 1;"),
        (lambda: agg.ewma("x", half_life="0s"), "DURATION_TOO_SHORT", "half_life of ewma"),
        (lambda: agg.ewma("x", half_life=timedelta(seconds=-1)), "DURATION_TOO_SHORT", "half_life of ewma"),
    ],
)
def test_parameter_out_of_range_is_refused(define: Callable[[], Any], code: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        define()
    assert caught.value.code == code


@pytest.mark.parametrize(
    "aggregate",
    [
        agg.sum("s"),
        agg.sum("when"),
        agg.mean("s"),
        agg.variance("l"),
        agg.quantile("s", 0.5),
        agg.median("when"),
        agg.ewma("s", half_life="1m"),
        agg.min("l"),
        agg.collect_set("l"),
        agg.count_distinct(pl.struct("x", "s")),
        agg.top(3, by="l"),
    ],
    ids=repr,
)
def test_input_of_an_unsuitable_type_is_refused(aggregate: agg.Aggregate) -> None:
    with pytest.raises(DefinitionError, match=r"needs .*; got .*; choose another column or cast it") as caught:
        aggregate.output_type(SCHEMA)
    assert caught.value.code == "AGGREGATE_INPUT_TYPE"


@pytest.mark.parametrize(
    "expression",
    [
        pl.col("x").sum(),
        "sum(x)",
        pl.col("x") - pl.col("x").mean(),
        pl.col("x").shift(1),
        pl.len(),
        pl.col("x").over("s"),
    ],
    ids=str,
)
def test_input_that_looks_at_other_rows_is_refused(expression: str | pl.Expr) -> None:
    with pytest.raises(DefinitionError) as caught:
        agg.sum(expression).output_type(SCHEMA)
    assert caught.value.code == "AGGREGATE_INPUT_NOT_A_ROW_VALUE"


@pytest.mark.parametrize(
    "expression",
    [
        "x",
        "x * 2",
        "case when x > 1 then 2 end",
        pl.lit(1),
        pl.col("l").list.sum(),
        pl.col("s").str.len_chars(),
        pl.col("x").map_elements(abs, return_dtype=pl.Float64),
        pl.col("x").fill_null(0).clip(0, 5),
    ],
    ids=str,
)
def test_input_computed_from_one_row_is_taken(expression: str | pl.Expr) -> None:
    assert agg.sum(expression).output_type(SCHEMA).is_numeric()


def test_unknown_column_is_refused_with_the_near_miss() -> None:
    with pytest.raises(DefinitionError, match=r"`whem` in `max\(whem\)` \(did you mean `when`\?\)") as caught:
        agg.max("whem").output_type(SCHEMA)
    assert caught.value.code == "UNKNOWN_COLUMN"


def test_unreadable_sql_is_refused() -> None:
    with pytest.raises(DefinitionError) as caught:
        agg.sum("x +").output_type(SCHEMA)
    assert caught.value.code == "EXPRESSION_SQL"
