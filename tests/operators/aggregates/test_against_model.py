"""Every aggregate against a slow, obvious model: at once, in pieces merged in any order, and rolling."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater.operators.aggregates as agg
from slackwater.operators.aggregates.combine import combine_rows, empty_state, finish, merge_states, state_schema
from tests.operators.aggregates.rows import (
    SCHEMA,
    VISIBLE,
    Results,
    Row,
    assert_same,
    at_once,
    frame_of,
    in_log_order,
    in_pieces,
    many_rows,
    results,
    rolling,
)


class Spread(agg.Accumulator):
    """The difference of the largest and the smallest value."""

    output = pl.Int64

    def create(self) -> list[int]:
        return []

    def add(self, acc: list[int], value: int) -> list[int]:
        return [min([*acc[:1], value]), max([*acc[1:], value])]

    def merge(self, a: list[int], b: list[int]) -> list[int]:
        return [min(a[0], b[0]), max(a[1], b[1])]

    def result(self, acc: list[int]) -> int | None:
        return acc[1] - acc[0] if acc else None


def values(rows: list[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def numbers(rows: list[Row]) -> list[float]:
    return [value for value in values(rows, "x") if not math.isnan(value)]


def of_some(function: Callable[[list[Any]], Any], column: str) -> Callable[[list[Row]], Any]:
    """The model `function` over the values of a column, null if there are none."""
    return lambda rows: function(found) if (found := values(rows, column)) else None


def smallest(rows: list[Row]) -> float | None:
    return min(numbers(rows), default=float("nan") if values(rows, "x") else None)


def variance(rows: list[Row]) -> float | None:
    found = values(rows, "i")
    return float(statistics.variance(found)) if len(found) > 1 else None


def top_two(rows: list[Row]) -> list[Row]:
    wanted = [row for row in in_log_order(rows) if row["x"] is not None and not math.isnan(row["x"])]
    picked = sorted(wanted, key=lambda row: -row["x"])[:2]
    return [{name: value for name, value in row.items() if not name.startswith("__")} for row in picked]


def top_strings(rows: list[Row]) -> list[str]:
    wanted = [row for row in in_log_order(rows) if row["i"] is not None and row["s"] is not None]
    return [row["s"] for row in sorted(wanted, key=lambda row: -row["i"])[:3]]


def decayed(rows: list[Row]) -> float | None:
    found = [(row["i"], 0.5 ** (-row["__ts"] / 2000)) for row in rows if row["i"] is not None]
    return sum(i * w for i, w in found) / sum(w for _, w in found) if found else None


def bucketed(value: float) -> float:
    """The middle of a value's bucket in a sketch with a relative error of 1 %."""
    log = math.log(1.01 / 0.99)
    return math.copysign(math.exp(math.ceil(math.log(abs(value)) / log) * log) * 0.99, value) if value else 0.0


NOTHING: list[None] = [None]


def quartiles(rows: list[Row]) -> list[float] | None:
    found = sorted(values(rows, "i"))
    return [bucketed(found[math.floor(q * (len(found) - 1))]) for q in (0.25, 0.75)] if found else None


Model = Callable[[list[Row]], Any]

STREAMED: dict[str, tuple[agg.Aggregate, Model]] = {
    "count": (agg.count(), len),
    "count_column": (agg.count("x"), lambda rows: len(values(rows, "x"))),
    "sum_int": (agg.sum("i"), of_some(sum, "i")),
    "sum_decimal": (agg.sum("d"), of_some(sum, "d")),
    "sum_truth": (agg.sum("b"), of_some(sum, "b")),
    "sum_sql": (agg.sum("i * 2 + 1"), of_some(lambda i: sum(2 * v + 1 for v in i), "i")),
    "sum_literal": (agg.sum(pl.lit(2)), lambda rows: 2 * len(rows) if rows else None),
    "min_float": (agg.min("x"), smallest),
    "min_string": (agg.min("s"), of_some(min, "s")),
    "max_int": (agg.max("i"), of_some(max, "i")),
    "max_key": (agg.max("k"), of_some(max, "k")),
}
GATHERED: dict[str, tuple[agg.Aggregate, Model]] = {
    "count_distinct": (agg.count_distinct("s"), lambda rows: len(set(values(rows, "s")))),
    "approx_distinct": (agg.approx_distinct("i", k=32), lambda rows: len(set(values(rows, "i")))),
    "sum_float": (agg.sum("x"), of_some(sum, "x")),
    "mean": (agg.mean("x"), of_some(lambda x: sum(x) / len(x), "x")),
    "variance": (agg.variance("i"), variance),
    "stddev": (agg.stddev("i", ddof=0), of_some(statistics.pstdev, "i")),
    "first": (agg.first("s"), lambda rows: next(iter(values(in_log_order(rows), "s")), None)),
    "last": (agg.last("s"), lambda rows: next(iter(values(in_log_order(rows)[::-1], "s")), None)),
    "collect_list": (agg.collect_list("x"), lambda rows: values(in_log_order(rows), "x")),
    "collect_set": (agg.collect_set("s"), lambda rows: sorted(set(values(rows, "s")))),
    "top_rows": (agg.top(2, by="x"), top_two),
    "top_column": (agg.top(3, by="i", column="s"), top_strings),
    "quantile": (agg.quantile("i", 0.75), lambda rows: (quartiles(rows) or NOTHING)[-1]),
    "quantiles": (agg.quantiles("i", [0.25, 0.75]), quartiles),
    "median": (agg.median("x"), lambda rows: statistics.median(numbers(rows)) if numbers(rows) else None),
    "ewma": (agg.ewma("i", half_life="2s"), decayed),
    "accumulator": (agg.accumulator(Spread, "i"), of_some(lambda i: max(i) - min(i), "i")),
}
ALL = STREAMED | GATHERED

# Together, because that is how they are used, and in two groups, because the first takes another engine.
groups = pytest.mark.parametrize("cases", [STREAMED, GATHERED], ids=["streamed", "gathered"])
Cases = dict[str, tuple[agg.Aggregate, Model]]


def aggregates(cases: Cases) -> dict[str, agg.Aggregate]:
    return {alias: aggregate for alias, (aggregate, _) in cases.items()}


def modelled(cases: Cases, rows: list[Row]) -> Row:
    return {alias: model(rows) for alias, (_, model) in cases.items()}


def by_key(cases: Cases, rows: list[Row]) -> Results:
    keys = {row["k"] for row in rows}
    return {(key,): modelled(cases, [row for row in rows if row["k"] == key]) for key in keys}


@groups
@given(rows=many_rows())
def test_all_rows_at_once_agree_with_the_model(cases: Cases, rows: list[Row]) -> None:
    assert_same(at_once(aggregates(cases), rows), by_key(cases, rows))


@groups
@given(rows=many_rows(), dice=st.randoms(use_true_random=False))
def test_pieces_merged_in_any_order_agree_with_the_model(cases: Cases, rows: list[Row], dice: random.Random) -> None:
    assert_same(in_pieces(aggregates(cases), rows, dice), by_key(cases, rows))


@groups
@given(rows=many_rows(), size_ms=st.integers(1, 6))
def test_rolling_merges_agree_with_the_model(cases: Cases, rows: list[Row], size_ms: int) -> None:
    def window(key: str | None, end: int) -> list[Row]:
        return [row for row in rows if row["k"] == key and end - size_ms < row["__ts"] <= end]

    instants = {(row["k"], row["__ts"]) for row in rows}
    wanted = {instant: modelled(cases, window(*instant)) for instant in instants}
    assert_same(rolling(aggregates(cases), rows, size_ms), wanted)


def test_no_rows_give_the_results_of_no_rows() -> None:
    many = aggregates(ALL)
    assert results(empty_state(VISIBLE, many, 1), many) == {(): modelled(ALL, [])}


@given(rows=many_rows())
def test_types_of_states_and_results_are_as_announced(rows: list[Row]) -> None:
    many = aggregates(ALL)
    states = combine_rows(frame_of(rows), ["k"], many)
    assert dict(states.drop("k").schema) == dict(state_schema(VISIBLE, many))
    merged = merge_states(pl.concat([states, states]), ["k"], many)
    assert dict(merged.schema) == dict(states.schema)
    announced = {alias: aggregate.output_type(SCHEMA) for alias, aggregate in many.items()}
    assert dict(finish(merged, many).drop("k").schema) == announced


@given(rows=many_rows())
def test_states_survive_arrow(rows: list[Row]) -> None:
    many = aggregates(ALL)
    states = combine_rows(frame_of(rows), ["k"], many)
    back = pl.DataFrame(states.to_arrow())
    assert_same(results(merge_states(back, ["k"], many), many), by_key(ALL, rows))
