"""Keys with two names in outer joins: as in SQL, each is its own side's, and null without a row of that side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import slackwater as sw
from slackwater.plan.streams import KeyedStream, Results
from slackwater.testing import Harness

Joined = Callable[[KeyedStream, KeyedStream], Results]


def interval(left: KeyedStream, right: KeyedStream) -> Results:
    return left.join(right, between=("0s", "1s"), how="full", name="joined")


def windowed(left: KeyedStream, right: KeyedStream) -> Results:
    window = sw.tumbling("1m")
    return left.window(window).join(right.window(window), how="full", name="joined")


def started(join: Joined, left: str, right: str, next_step: Any = None) -> tuple[Harness, Results]:  # noqa: ANN401  a function
    orders = sw.stream("orders", sw.testing.rows_source(f"{left} long, v long, t long")).event_time("t")
    payments = sw.stream("payments", sw.testing.rows_source(f"{right} long, w long, t long")).event_time("t")
    results = join(orders.key_by(left), payments.key_by(right))
    last = next_step(results) if next_step else results
    late = [each.late.drop() for each in {results.name: results, last.name: last}.values()]
    ends = [last.to(sw.sinks.memory()), *late, orders.dead_letters.drop(), payments.dead_letters.drop()]
    test = Harness(sw.Pipeline("p", *ends, key_groups=1))
    test.send("orders", [{left: 1, "v": 10, "t": 5}, {left: 2, "v": 20, "t": 5}])
    test.send("payments", [{right: 9, "w": 90, "t": 5}, {right: 2, "w": 50, "t": 5}, {right: 8, "w": 80, "t": 5}])
    return test, last


@pytest.mark.parametrize("join", [interval, windowed])
def test_the_left_key_is_null_without_a_left_row_if_the_names_differ(join: Joined) -> None:
    test, results = started(join, "id", "order_id")
    test.finish()
    shown = test.output(results).select("id", "v", "order_id", "w").rows()
    expected = [(1, 10, None, None), (2, 20, 2, 50), (None, None, 8, 80), (None, None, 9, 90)]
    assert sorted(shown, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("join", [interval, windowed])
def test_a_key_of_one_name_is_of_both_sides(join: Joined) -> None:
    test, results = started(join, "id", "id")
    test.finish()
    shown = test.output(results).select("id", "v", "w").rows()
    assert sorted(shown) == [(1, 10, None), (2, 20, 50), (8, None, 80), (9, None, 90)]


def test_the_right_key_is_null_without_a_version() -> None:
    test, results = started(lambda a, b: a.join_as_of(b, versions_ttl="1h", how="left"), "id", "order_id")
    test.finish()
    assert sorted(test.output(results).select("id", "order_id").rows(), key=str) == [(1, None), (2, 2)]


def test_state_is_shown_by_the_key_of_the_step_on_both_sides() -> None:
    test, _ = started(interval, "id", "order_id")
    test.run_batch()
    held = test.state("joined").select("id", "side", "order_id")
    expected = [(1, "left", None), (2, "left", None), (2, "right", 2), (8, "right", 8), (9, "right", 9)]
    assert sorted(held.rows(), key=str) == expected
    assert test.state("joined", key="9").select("id", "order_id").rows() == [(9, 9)]


def test_a_step_on_the_results_sees_the_null_and_the_same_order_in_every_run() -> None:
    def counted(results: Results) -> Results:
        window = results.key_by("id").window(sw.tumbling("1m"), name="counted")
        return window.aggregate(n=sw.count(), orders=sw.collect_list("order_id"))

    test, results = started(interval, "id", "order_id", counted)
    test.finish()
    shown = test.output(results).select("id", "n", "orders").rows()
    assert sorted(shown, key=str) == [(1, 1, []), (2, 1, [2]), (None, 2, [9, 8])]
