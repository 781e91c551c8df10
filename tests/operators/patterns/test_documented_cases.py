"""Cases that the documentation of other systems shows, as far as they have a counterpart here.

Flink CEP: "FlinkCEP - Complex event processing for Flink" (docs/libs/cep), where a relaxed pattern gives every
combination and this one the longest. SQL: "Pattern Recognition" in Flink's documentation of MATCH_RECOGNIZE
(docs/dev/table/sql/queries/match_recognize), whose patterns are strict.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.patterns import Pattern
from tests.operators.patterns.matched import Matched, letters, matches, row


def of_kinds(text: str, **options: Any) -> Pattern:  # noqa: ANN401  as `sequence` takes them
    """Return a pattern of kinds, such as `a b+ c`."""
    return sw.sequence({word: f"kind = '{word[0]}'" for word in text.split()}, within="1h", **options)


def prices(*given: int, every_ms: int = 1000) -> list[dict[str, Any]]:
    """Return rows with these prices, whose names are their prices."""
    return [row(str(price), every_ms * at, price=price) for at, price in enumerate(given)]


@pytest.mark.parametrize("contiguity, found", [("strict", []), ("relaxed", ["a b1"])])
def test_cep_contiguity_between_two_events(contiguity: Any, found: list[str]) -> None:  # noqa: ANN401  a literal
    assert matches(of_kinds("a b", contiguity=contiguity), letters("a c b1 b2")) == found


def test_cep_contiguity_within_a_loop_ignores_what_does_not_match() -> None:
    assert matches(of_kinds("a b+ c"), letters("a b1 d1 b2 d2 b3 c")) == ["a b1 b2 b3 c"]


def test_cep_loop_that_need_not_be_consecutive() -> None:
    assert matches(of_kinds("C A+ B"), letters("C D A1 A2 A3 D A4 B")) == ["C A1 A2 A3 A4 B"]


@pytest.mark.parametrize(
    "skip, found", [("next_row", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]), ("past_last", ["b1 b2 b3 c"])]
)
def test_cep_skip_strategies(skip: Any, found: list[str]) -> None:  # noqa: ANN401  a literal
    assert matches(of_kinds("b+ c", skip=skip), letters("b1 b2 b3 c")) == found


def test_cep_greedy_loop_after_steps_that_could_take_its_rows() -> None:
    steps = {"first": "kind in ('a', 'b', 'c')", "second": "kind in ('b', 'c')", "c+": "kind = 'c'", "d": "kind = 'd'"}
    pattern = sw.sequence(steps, within="1h", skip="next_row")
    assert matches(pattern, letters("a b c1 c2 c3 d")) == ["a b c1 c2 c3 d", "b c1 c2 c3 d", "c1 c2 c3 d"]


def test_cep_event_that_does_not_follow() -> None:
    """The pattern that ends in `notFollowedBy` with a time."""
    pattern = sw.absent(after="kind = 'a'", expect="kind = 'b'", within="10s")
    assert matches(pattern, letters("a1 c a2 b a3")) == ["a3"]


def test_sql_greedy_quantifier_swallows_what_the_next_variable_could_take() -> None:
    pattern = sw.sequence({"a": "price > 10", "b*": "price < 15", "c": "price > 12"}, within="1h", contiguity="strict")
    assert matches(pattern, prices(10, 11, 12, 13, 14, 16)) == ["11 12 13 14 16"]


def test_sql_price_drop_within_an_hour_that_includes_its_end() -> None:
    steps = {"a": "true", "b*": "price > a.price - 10", "c": "price < a.price - 10"}
    pattern = sw.sequence(steps, within="1h", contiguity="strict")
    twenty_minutes = 20 * 60 * 1000
    step = Matched(pattern)
    step.add(*prices(20, 17, 18, 11, 14, 9, 15, 14, 24, 1, 19, every_ms=twenty_minutes))
    step.finish()
    drop = pl.col("a_price") - pl.col("c_price")
    assert step.rows().select(drop.alias("drop"), at=pl.col("c_ts") // twenty_minutes).rows() == [(14, 9)]


def test_sql_rising_prices_that_fall() -> None:
    steps = {"a+": "a.price is null or price > a.price", "b": "price < a.price"}
    pattern = sw.sequence(steps, within="1h", contiguity="strict")
    step = Matched(pattern)
    step.add(*prices(10, 12, 13, 11))
    step.finish()
    assert step.rows().select("a_price", "a_count", "b_price").rows() == [([10, 12, 13], 3, 11)]


def test_sql_falling_prices_that_rise_again() -> None:
    steps = {"start": "true", "down+": "price < coalesce(down.price, start.price)", "up": "price > down.price"}
    pattern = sw.sequence(steps, within="1h", contiguity="strict")
    assert matches(pattern, prices(12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19)) == ["25 18 15 14 24"]


@pytest.mark.parametrize("given", [(10, 15, 20), (10, 20)])
def test_sql_optional_variable_and_the_row_before(given: tuple[int, ...]) -> None:
    steps = {"a": "true", "b?": "price < 20", "c": "coalesce(b.price, a.price) < price"}
    pattern = sw.sequence(steps, within="1h", contiguity="strict")
    assert matches(pattern, prices(*given)) == [" ".join(map(str, given))]
