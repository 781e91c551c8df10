"""Combining many aggregates at once: frames in, frames out."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import slackwater.operators.aggregates as agg
from slackwater.operators.aggregates.combine import combine_rows, empty_state, finish, merge_states, state_schema
from tests.operators.aggregates.test_against_model import ALL, aggregates

SCHEMA = pl.Schema({"k": pl.String(), "x": pl.Float64()})
TWO: dict[str, agg.Aggregate] = {"n": agg.count(), "p95": agg.quantile("x", 0.95)}


def some_rows() -> pl.DataFrame:
    hidden = {"__ts": [1, 2, 3], "__part": ["p"] * 3, "__off": [0, 1, 2]}
    return pl.DataFrame({"k": ["a", None, "a"], "x": [1.0, 2.0, None], **hidden})


def test_result_has_what_was_there_and_the_aliases_in_their_order() -> None:
    states = combine_rows(some_rows(), ["k"], TWO, [pl.len().alias("__new")])
    assert finish(states, TWO).columns == ["k", "__new", "n", "p95"]


def test_null_is_a_key_like_any_other() -> None:
    done = finish(combine_rows(some_rows(), ["k"], TWO), TWO)
    assert dict(zip(done["k"].to_list(), done["n"].to_list(), strict=True)) == {"a": 2, None: 1}


def test_extra_aggregations_are_merged_beside_the_states() -> None:
    states = combine_rows(some_rows(), ["k"], TWO, [pl.len().cast(pl.Int64).alias("__new")])
    merged = merge_states(pl.concat([states, states]), ["k"], TWO, [pl.col("__new").sum()])
    assert dict(merged.select("k", "__new").sort("k", nulls_last=True).iter_rows()) == {"a": 4, None: 2}


def test_merged_groups_come_in_the_order_of_their_first_rows() -> None:
    states = combine_rows(some_rows(), ["k"], TWO).sort("k", nulls_last=True)
    assert merge_states(pl.concat([states.reverse(), states]), ["k"], TWO)["k"].to_list() == [None, "a"]


def test_frames_without_rows_keep_their_columns() -> None:
    states = combine_rows(some_rows().clear(), ["k"], TWO)
    assert states.columns == ["k", *state_schema(SCHEMA, TWO)]
    assert finish(merge_states(states, ["k"], TWO), TWO).height == 0
    assert empty_state(SCHEMA, TWO, 0).columns == list(state_schema(SCHEMA, TWO))


@pytest.mark.parametrize("engine_free", [TWO, {"total": agg.sum("x")}, {"n": agg.count(), "spread": agg.stddev("x")}])
def test_same_rows_give_the_same_bits_in_every_run(engine_free: dict[str, agg.Aggregate]) -> None:
    """Polars' streaming engine would fail this: it adds floats up in another order each time."""
    dice = np.random.default_rng(3)
    rows = pl.DataFrame({"k": dice.integers(0, 5_000, 200_000), "x": dice.random(200_000)})
    runs = [combine_rows(rows, ["k"], engine_free).sort("k") for _ in range(4)]
    assert all(run.equals(runs[0]) for run in runs)


def test_aggregate_of_a_column_that_is_also_a_key() -> None:
    many = {"n": agg.count("k"), "distinct": agg.count_distinct("k"), "last": agg.max("k")}
    done = finish(combine_rows(some_rows(), ["k"], many), many)
    assert sorted(done.rows(), key=str) == [("a", 2, 1, "a"), (None, 0, 0, None)]


def test_aliases_that_begin_alike_do_not_mix() -> None:
    many: dict[str, agg.Aggregate] = {"a": agg.count(), "a_b": agg.sum("x"), "a_": agg.max("x")}
    done = finish(combine_rows(some_rows(), ["k"], many), many).filter(pl.col("k") == "a")
    assert done.rows() == [("a", 2, 1.0, 1.0)]


def test_every_aggregate_can_be_sent_to_a_worker() -> None:
    many = aggregates(ALL)
    sent = pickle.loads(pickle.dumps(many))  # noqa: S301  our own
    assert {alias: repr(each) for alias, each in sent.items()} == {alias: repr(e) for alias, e in many.items()}


def test_aggregate_shows_itself_in_the_same_words_in_every_run() -> None:
    assert repr(agg.sum(pl.col("x") * 2)) == 'sum([(col("x")) * (dyn int: 2)])'
    assert repr(agg.top(3, by="x", column="s")) == "top(n=3, by=x, s)"
    assert repr(agg.count()) == "count()"
