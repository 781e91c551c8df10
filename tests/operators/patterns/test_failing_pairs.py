"""A condition that ties two rows and fails on a pair: the pair does not match, and nothing else is lost."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.step import KeyedStep
from slackwater.testing import Harness, rows_source


def found(condition: Any, rows: list[dict[str, object]], **options: Any) -> tuple[list[tuple[Any, ...]], int, int]:  # noqa: ANN401  any expression
    """Return the pairs found, the number of dead letters, and that of pairs on which the condition failed."""
    events = sw.stream("events", rows_source("k string, a long, s string, t long")).event_time("t")
    pattern = sw.sequence(x="a < 0", y=condition, within="1h", **options)
    matches = events.key_by("k").match(pattern, name="m")
    ends = [out.to(sw.sinks.memory()) for out in (matches, matches.late, events.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends))
    for row in rows:
        harness.send("events", [{"k": "x", "s": "1", **row}])
    harness.run_batch()
    harness.advance_watermark(10_000_000)
    failed = harness.last.counts["m"]["unmatchable"]
    return harness.output(matches).select("x_a", "y_a").rows(), harness.output(events.dead_letters).height, failed


def test_a_pair_on_which_the_condition_fails_does_not_match_and_the_next_one_may() -> None:
    rows: list[dict[str, object]] = [{"a": -100, "t": 0}, {"a": 100, "t": 1}, {"a": 20, "t": 2}]
    matches, dead, failed = found("cast(a - x.a as tinyint) > 1", rows)
    assert (matches, dead, failed) == ([(-100, 20)], 0, 1)


def test_a_row_that_fails_paired_with_itself_is_no_dead_letter() -> None:
    # Of two rows 128 apart the difference fits; of a row and its double it would not.
    rows: list[dict[str, object]] = [{"a": -100, "t": 0}, {"a": 20, "t": 1}]
    assert found("cast(a - 2 * x.a - 200 as tinyint) > 1", rows)[:2] == ([(-100, 20)], 0)


@pytest.mark.parametrize("condition", ["cast(s as bigint) > x.a", "a > cast(x.s as bigint)"])
def test_a_row_that_is_to_blame_alone_is_a_dead_letter(condition: str) -> None:
    rows: list[dict[str, object]] = [{"a": -5, "t": 0, "s": "bad"}, {"a": -4, "t": 1}, {"a": 20, "t": 2, "s": "7"}]
    assert found(condition, rows)[:2] == ([(-4, 20)], 1)


def test_a_function_that_fails_on_nulls_is_not_tried_with_them() -> None:
    def larger(pair: pl.Series) -> pl.Series:
        return pl.Series([row["a"] > row["b"] for row in pair.to_list()])

    pair = pl.struct(pl.col("a"), pl.col("x").struct.field("a").alias("b"))
    condition = pair.map_batches(larger, return_dtype=pl.Boolean, is_elementwise=True)
    assert found(condition, [{"a": -5, "t": 0}, {"a": 20, "t": 1}])[:2] == ([(-5, 20)], 0)


def spec(x: Any, y: Any, within: str = "1h") -> KeyedStep:  # noqa: ANN401  any expression
    events = sw.stream("events", rows_source("k string, a long, t long")).event_time("t")
    matches = events.key_by("k").match(sw.sequence(x=x, y=y, within=within), name="m")
    ends = [matches.to(sw.sinks.memory()), matches.late.drop(), events.dead_letters.drop()]
    return sw.Pipeline("p", *ends).plan().by_name["m"].spec


def test_a_condition_on_other_rows_may_be_corrected_and_the_job_continued() -> None:
    before = spec("a < 0", "a > 1 and cast(a - x.a as tinyint) > 1").layout
    assert spec("a < 0", "a > 1 and a - x.a > 1").difference(before) is None
    for changed in (spec("a < 1", "a > 1 and a - x.a > 1"), spec("a < 0", "a > 2 and a - x.a > 1")):
        assert changed.difference(before) is not None
    assert spec("a < 0", "a > 1 and a - x.a > 1", within="2h").difference(before) is not None
