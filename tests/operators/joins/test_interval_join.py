"""Interval joins, one behaviour at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.joins import kept_rows, matching
from slackwater.operators.joins.step import How
from slackwater.operators.state.store import DictStore
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.joins.sides import pipeline, stream

ORDERS = "order_id string, ts long, amount long"
PAYMENTS = "order_id string, ts long, amount long, method string"


def order(order_id: str | None, ts: int, amount: int = 10) -> dict[str, Any]:
    return {"order_id": order_id, "ts": ts, "amount": amount}


def payment(order_id: str | None, ts: int, amount: int = 10) -> dict[str, Any]:
    return {"order_id": order_id, "ts": ts, "amount": amount, "method": "card"}


def joined(**options: Any) -> Results:  # noqa: ANN401  the options of `join`
    orders, payments = stream("orders", ORDERS), stream("payments", PAYMENTS)
    options = {"between": ("-5ms", "10ms"), **options}
    return orders.key_by("order_id").join(payments.key_by("order_id"), **options)


def harness(has_late: bool = True, **options: Any) -> tuple[Harness, Results]:  # noqa: ANN401, FBT001, FBT002
    results = joined(**options)
    return Harness(pipeline(results, has_late=has_late)), results


def times(frame: pl.DataFrame) -> list[tuple[int | None, int | None]]:
    return sorted(frame.select("ts", "ts_right").rows(), key=str)


def test_both_bounds_are_inclusive() -> None:
    """
    payment      94   95                100                  110  111
                  ·    [─────────────────o────────────────────]    ·
    """
    test, results = harness()
    test.send("orders", [order("a", 100)])
    test.send("payments", [payment("a", ts) for ts in (94, 95, 110, 111)])
    test.finish()
    assert times(test.output(results)) == [(100, 110), (100, 95)]


def test_a_pair_comes_out_in_the_batch_of_its_second_row() -> None:
    test, results = harness()
    test.send("orders", [order("a", 100)]).run_batch()
    assert test.output(results).is_empty()
    shown = test.send("payments", [payment("a", 101)]).run_batch()
    assert times(shown[results.name]) == [(100, 101)]


def test_bounds_may_both_lie_on_one_side() -> None:
    test, results = harness(between=("3ms", "5ms"))
    test.send("orders", [order("a", 100)]).send("payments", [payment("a", ts) for ts in (100, 102, 103, 105, 106)])
    test.finish()
    assert times(test.output(results)) == [(100, 103), (100, 105)]


def test_an_unmatched_row_comes_out_when_no_partner_can_come_any_more() -> None:
    test, results = harness(how="left")
    test.send("orders", [order("a", 100)]).run_batch()
    assert test.advance_watermark(110)[results.name].is_empty()
    [row] = test.advance_watermark(111)[results.name].rows(named=True)
    assert (row["order_id"], row["ts"], row["ts_right"], row["method"]) == ("a", 100, None, None)
    assert row["event_time"].timestamp() == 0.1


def test_a_row_that_can_have_no_partner_any_more_is_padded_as_it_comes() -> None:
    """The bounds ask for payments at least 30 ms before their order: the watermark has passed them."""
    test, results = harness(between=("-50ms", "-30ms"), how="left")
    test.advance_watermark(100)
    shown = test.send("orders", [order("a", 110), order("b", 130)]).run_batch()
    assert times(shown[results.name]) == [(110, None)]


def test_the_key_of_a_padded_right_row_is_its_own() -> None:
    test, results = harness(how="right")
    test.send("payments", [payment("b", 100)])
    test.finish()
    assert test.output(results).select("order_id", "ts", "method").rows() == [("b", None, "card")]


def test_null_keys_meet_nothing_and_are_counted_where_they_are_not_padded() -> None:
    test, results = harness(how="left")
    test.send("orders", [order(None, 100)]).send("payments", [payment(None, 100)]).run_batch()
    assert test.last.counts["orders.join"] == {"on_time": 1, "unmatched": 1}
    test.finish()
    assert times(test.output(results)) == [(100, None)]


def test_a_key_of_several_columns_with_a_null_meets_nothing() -> None:
    one, two = stream("one", "a long, b string, ts long"), stream("two", "c long, d string, ts long")
    results = one.key_by("a", "b").join(two.key_by("c", "d"), between=("0s", "1s"), how="full")
    test = Harness(pipeline(results))
    test.send("one", [{"a": 1, "b": None, "ts": 5}, {"a": 1, "b": "x", "ts": 5}])
    test.send("two", [{"c": 1, "d": None, "ts": 5}, {"c": 1, "d": "x", "ts": 6}])
    test.finish()
    rows = sorted(test.output(results).select("a", "b", "c", "d").rows(), key=str)
    assert rows == [(1, "x", 1, "x"), (1, None, None, None), (None, None, 1, None)]


def test_late_rows_have_the_columns_of_both_sides_and_say_which_they_are_of() -> None:
    test, results = harness()
    test.advance_watermark(200)
    test.send("orders", [order("a", 150, amount=3)]).send("payments", [payment("a", 199)]).run_batch()
    rows = test.output(results.late).select("side", "order_id", "amount", "method", "late_by_ms").rows()
    assert sorted(rows) == [("left", "a", 3, None, 50), ("right", "a", 10, "card", 1)]


def test_columns_of_different_types_have_two_names_in_late_rows() -> None:
    one, two = stream("one", "k string, ts long, x long"), stream("two", "k string, ts long, x double")
    results = one.key_by("k").join(two.key_by("k"), between=("0s", "1s"), suffixes=("_1", "_2"))
    test = Harness(pipeline(results))
    test.advance_watermark(10)
    test.send("one", [{"k": "a", "ts": 1, "x": 7}]).send("two", [{"k": "a", "ts": 2, "x": 0.5}]).run_batch()
    assert sorted(test.output(results.late).select("side", "ts", "x_1", "x_2").rows()) == [
        ("left", 1, 7, None),
        ("right", 2, None, 0.5),
    ]
    assert results.name == "one.join"


def test_a_late_row_that_is_processed_meets_what_is_still_kept() -> None:
    test, results = harness(has_late=False, late="process", how="left")
    test.send("orders", [order("a", 100), order("b", 120)]).run_batch()
    test.advance_watermark(111)
    shown = test.send("payments", [payment("a", 101), payment("b", 119)]).send("orders", [order("c", 90)]).run_batch()
    assert times(shown[results.name]) == [(120, 119), (90, None)]
    assert test.last.counts["orders.join"] == {"processed_late": 2, "on_time": 1, "rows": 2}


def test_columns_that_both_sides_have_get_suffixes() -> None:
    test, results = harness(suffixes=("_order", "_payment"))
    columns = test.output(results).columns
    assert columns == ["order_id", "ts_order", "amount_order", "ts_payment", "amount_payment", "method", "event_time"]


def test_keys_are_compared_by_value_whatever_their_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "hash_columns", lambda rows, _: np.zeros(rows.height, np.uint64))
    test, results = harness()
    test.send("orders", [order("a", 100), order("b", 100)]).send("payments", [payment("b", 101)])
    test.finish()
    assert test.output(results)["order_id"].to_list() == ["b"]


@pytest.mark.parametrize(
    "condition", ["right.amount <= left.amount", pl.col("right").struct["amount"] <= pl.col("left").struct["amount"]]
)
def test_a_condition_is_part_of_the_match(condition: str | pl.Expr) -> None:
    test, results = harness(on_match=condition, how="full")
    test.send("orders", [order("a", 100, 5)]).send("payments", [payment("a", 101, 5), payment("a", 102, 6)])
    test.finish()
    assert times(test.output(results)) == [(100, 101), (None, 102)]


def test_a_condition_that_is_null_is_not_met() -> None:
    test, results = harness(on_match="right.method <> left.order_id")
    rows = [{**payment("a", 101), "method": None}, payment("a", 102)]
    test.send("orders", [order("a", 100)]).send("payments", rows)
    test.finish()
    assert times(test.output(results)) == [(100, 102)]


def test_a_row_on_which_the_condition_fails_is_a_dead_letter_of_its_stream_and_the_others_meet() -> None:
    condition = "cast(right.method as bigint) > 0"
    test, results = harness(on_match=condition, how="left")
    test.send("orders", [order("a", 100), order("b", 100)]).run_batch()
    rows = [{**payment("a", 101), "method": "1"}, {**payment("a", 102), "method": "many"}]
    test.send("payments", rows).run_batch()
    assert test.last.counts["orders.join"] == {"on_time": 1, "rows": 1}
    test.finish()
    assert times(test.output(results)) == [(100, 101), (100, None)]
    assert test.output("orders.dead_letters").is_empty()
    [letter] = test.output("payments.dead_letters").rows(named=True)
    place = (letter["step"], letter["reason"], letter["partition"], letter["offset"])
    assert place == ("orders.join", "failed", "0", 1)
    assert b'"method":"many"' in letter["payload"].replace(b" ", b"")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_bad_row_does_not_take_its_good_partners_with_it(is_first: bool) -> None:  # noqa: FBT001  a parameter of the test
    condition = "cast(left.order_id as bigint) < cast(right.method as bigint)"
    test, results = harness(on_match=condition, how="full")
    bought, good = order("1", 100), [{**payment("1", 101 + n), "method": what} for n, what in enumerate(("2", "3"))]
    rows = [{**payment("1", 99), "method": "zz"}, *good]
    if is_first:
        test.send("orders", [bought]).run_batch()
        test.send("payments", rows).run_batch()
    else:
        test.send("payments", rows).run_batch()
        test.send("orders", [bought]).run_batch()
    test.finish()
    assert times(test.output(results)) == [(100, 101), (100, 102)]
    assert test.output("payments.dead_letters")["offset"].to_list() == [0]
    assert test.output("orders.dead_letters").is_empty()


def test_a_pair_for_which_no_row_alone_is_to_blame_does_not_match_and_is_counted() -> None:
    joined_text = pl.concat_str(pl.col("left").struct["order_id"], pl.col("right").struct["method"])
    test, results = harness(on_match=joined_text.cast(pl.Int64) > 0, how="left")
    test.send("orders", [order("1", 100)]).run_batch()
    rows = [{**payment("1", 101), "method": "2"}, {**payment("1", 102), "method": "x"}]
    test.send("payments", rows).run_batch()
    assert test.last.counts["orders.join"] == {"on_time": 2, "rows": 1, "unmatchable": 1}
    test.finish()
    assert times(test.output(results)) == [(100, 101)]
    assert test.output("orders.dead_letters").is_empty()
    assert test.output("payments.dead_letters").is_empty()


@pytest.mark.parametrize(
    "condition",
    [
        "cast(coalesce(right.method, left.order_id) as bigint) > 0",
        "case when right.method = 'x' then cast(left.order_id as bigint) > 0 else true end",
    ],
)
@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_a_row_is_sound_if_the_condition_fails_on_an_absent_partner_only(condition: str, how: How) -> None:
    test, results = harness(on_match=condition, how=how)
    test.send("orders", [order("a", 100), order("b", 100)]).run_batch()
    test.send("payments", [{**payment("a", 101), "method": "7"}]).run_batch()
    assert "unmatchable" not in test.last.counts["orders.join"]
    test.finish()
    assert times(test.output(results)) == [(100, 101), *([(100, None)] if how != "inner" else [])]
    assert test.output("orders.dead_letters").is_empty()
    assert test.output("payments.dead_letters").is_empty()


def test_only_the_pairs_on_which_the_condition_fails_do_not_match() -> None:
    condition = "case when right.method = 'x' then cast(left.order_id as bigint) > 0 else true end"
    test, results = harness(on_match=condition, how="full")
    methods = ["7", "x", "8", "9", "x"]
    rows = [{**payment("a", 101 + n), "method": method} for n, method in enumerate(methods)]
    test.send("orders", [order("a", 100)]).send("payments", rows).run_batch()
    assert test.last.counts["orders.join"]["unmatchable"] == 2
    test.finish()
    assert times(test.output(results)) == [(100, 101), (100, 103), (100, 104), (None, 102), (None, 105)]
    assert test.output("orders.dead_letters").is_empty()
    assert test.output("payments.dead_letters").is_empty()


def test_a_function_of_ones_own_is_not_tried_without_a_partner() -> None:
    def is_less(pair: dict[str, dict[str, int]]) -> bool:
        return pair["left"]["amount"] <= pair["right"]["amount"]

    condition = pl.struct("left", "right").map_elements(is_less, return_dtype=pl.Boolean)
    test, results = harness(on_match=condition)
    test.send("orders", [order("a", 100, 5)]).send("payments", [payment("a", 101, 5), payment("a", 102, 4)])
    test.finish()
    assert times(test.output(results)) == [(100, 101)]


def test_a_stream_may_be_joined_with_itself() -> None:
    orders = stream("orders", ORDERS)
    results = orders.key_by("order_id").join(
        orders.key_by("order_id"), between=("1ms", "10ms"), on_match="left.amount < right.amount"
    )
    done = sw.testing.run(pipeline(results), {"orders": [order("a", 100, 1), order("a", 105, 2), order("a", 109, 0)]})
    assert times(done[results]) == [(100, 105)]


def test_results_of_a_join_can_be_joined_again() -> None:
    orders, payments = stream("orders", ORDERS), stream("payments", PAYMENTS)
    parcels = stream("parcels", "order_id string, ts long, weight long")
    paid = orders.key_by("order_id").join(payments.key_by("order_id"), between=("0s", "10ms"), how="left", name="paid")
    sent = (
        paid.select("order_id", "ts", paid="method")
        .key_by("order_id")
        .join(parcels.key_by("order_id"), between=("0s", "50ms"), how="full", name="sent")
    )
    ends: list[Any] = [
        sent,
        paid.late,
        sent.late,
        paid.dead_letters,
        *(s.dead_letters for s in (orders, payments, parcels)),
    ]
    test = Harness(sw.Pipeline("p", *(end.to(sw.sinks.memory()) for end in ends)))
    test.send("orders", [order("a", 100), order("b", 101)]).send("payments", [payment("a", 105)])
    test.send("parcels", [{"order_id": "b", "ts": 120, "weight": 7}])
    test.finish()
    rows = sorted(test.output(sent).select("order_id", "ts", "paid", "weight").rows())
    assert rows == [("a", 100, "card", None), ("b", 101, None, 7)]
    assert test.output(sent.late).is_empty()
    assert test.pieces == 0


def test_explain_says_how_long_rows_are_kept_and_when_unmatched_ones_come_out() -> None:
    text = pipeline(joined(between=("-5m", "1h"), how="left", on_match="right.amount <= left.amount")).explain()
    for line in (
        "step orders.join, left   [stage 0]",
        "join      left, order_id = order_id",
        "between   right time - left time from -5m to 1h",
        "if        right.amount <= left.amount",
        "keeps     left rows until the watermark is past their time + 1h",
        "keeps     right rows until the watermark is past their time + 5m",
        "unmatched left rows come out 1h after their time, when the watermark passes",
    ):
        assert line in text
    assert "unmatched right" not in text


@pytest.mark.parametrize("how", ["inner", "left"])
def test_after_a_backfill_a_batch_of_one_row_reads_little(how: How, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "LARGE_BYTES", 6_000)
    read: list[int] = []
    get = DictStore.get

    def counted(store: DictStore, key: str) -> bytes | None:
        blob = get(store, key)
        read.append(0 if key == "index" else len(blob or b""))
        return blob

    monkeypatch.setattr(DictStore, "get", counted)
    orders, payments = stream("orders", ORDERS), stream("payments", PAYMENTS)
    results = orders.key_by("order_id").join(payments.key_by("order_id"), between=("0s", "1h"), how=how, name="j")
    ends: list[Any] = [results, results.late, orders.dead_letters, payments.dead_letters]
    test = Harness(sw.Pipeline("p", *(end.to(sw.sinks.memory()) for end in ends), key_groups=1))
    for batch in range(6):
        test.send("orders", [order(f"{batch}/{n}", 100_000 + n % 1_000) for n in range(2_000)]).run_batch()
    test.send("payments", [payment("3/7", 100_100)]).run_batch()
    [state] = [held for held in test.engine.state.values() if held]
    held = sum(len(blob) for key, blob in state.items() if key != "index")
    read.clear()
    test.send("payments", [payment("3/8", 100_100)]).run_batch()
    assert test.output(results)["order_id"].to_list() == ["3/7", "3/8"]
    assert 0 < sum(read) < held / 4
