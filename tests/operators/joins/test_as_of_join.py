"""As-of joins, one behaviour at a time."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.joins.sides import pipeline, stream

ORDERS = "currency string, ts long, amount long"
RATES = "currency string, ts long, rate long, op string"


def order(ts: int, currency: str | None = "EUR") -> dict[str, Any]:
    return {"currency": currency, "ts": ts, "amount": 10}


def rate(ts: int, rate: int, currency: str | None = "EUR", op: str = "update") -> dict[str, Any]:
    return {"currency": currency, "ts": ts, "rate": rate, "op": op}


def joined(**options: Any) -> Results:  # noqa: ANN401  the options of `join_as_of`
    orders, rates = stream("orders", ORDERS), stream("rates", RATES)
    return orders.key_by("currency").join_as_of(rates.key_by("currency"), **{"versions_ttl": sw.FOREVER, **options})


def harness(**options: Any) -> tuple[Harness, Results]:  # noqa: ANN401  as above
    results = joined(**options)
    return Harness(pipeline(results, has_late=options.get("late") != "process")), results


def rates_of(frame: pl.DataFrame) -> list[tuple[int, int | None]]:
    return sorted(frame.select("ts", "rate").rows())


def test_a_row_meets_the_version_valid_at_its_time() -> None:
    """
    rate     100 ────────────▶ 200 ──────────▶
    time      10      15   19   20   25
    order      o       o    o    o    o
    """
    test, results = harness()
    test.send("rates", [rate(10, 100), rate(20, 200)]).send("orders", [order(ts) for ts in (9, 10, 15, 19, 20, 25)])
    test.finish()
    assert rates_of(test.output(results)) == [(10, 100), (15, 100), (19, 100), (20, 200), (25, 200)]


def test_a_row_comes_out_when_the_watermark_has_passed_it() -> None:
    test, results = harness()
    test.send("rates", [rate(1, 100)]).send("orders", [order(10)]).run_batch()
    assert test.advance_watermark(10)[results.name].is_empty()
    [row] = test.advance_watermark(11)[results.name].rows(named=True)
    assert (row["ts"], row["rate"], row["event_time"].timestamp()) == (10, 100, 0.01)


def test_a_version_that_comes_late_counts_for_rows_that_are_not_decided() -> None:
    test, results = harness()
    test.send("rates", [rate(1, 100)]).send("orders", [order(10), order(30)]).run_batch()
    test.advance_watermark(20)
    test.send("rates", [rate(5, 500), rate(19, 600)]).run_batch()
    test.finish()
    assert rates_of(test.output(results)) == [(10, 100), (30, 600)]


def test_of_versions_of_one_time_the_last_to_come_is_valid() -> None:
    test, results = harness()
    test.send("rates", [rate(5, 1), rate(5, 2)]).run_batch()
    test.send("rates", [rate(5, 3)]).send("orders", [order(6)])
    test.finish()
    assert rates_of(test.output(results)) == [(6, 3)]


def test_a_deleted_version_ends_the_one_before_it() -> None:
    test, results = harness(deleted="op = 'delete'", how="left")
    rates = [rate(10, 100), rate(20, 0, op="delete"), rate(30, 300)]
    test.send("rates", rates).send("orders", [order(ts) for ts in (5, 15, 25, 35)])
    test.finish()
    assert rates_of(test.output(results)) == [(5, None), (15, 100), (25, None), (35, 300)]


def test_a_version_on_which_deleted_fails_is_a_dead_letter() -> None:
    test, results = harness(deleted="cast(op as bigint) = 1")
    test.send("rates", [rate(1, 100, op="0"), rate(2, 200, op="gone")]).send("orders", [order(5)])
    test.finish()
    assert rates_of(test.output(results)) == [(5, 100)]
    assert test.output("rates.dead_letters")["step"].to_list() == ["orders.join"]


def test_a_version_lasts_no_longer_than_its_time_to_live() -> None:
    test, results = harness(versions_ttl="10ms", how="left")
    test.send("rates", [rate(10, 100)]).send("orders", [order(20), order(21)])
    test.finish()
    assert rates_of(test.output(results)) == [(20, 100), (21, None)]


def test_how_far_the_watermark_leaps_does_not_change_which_version_is_valid() -> None:
    test, results = harness(versions_ttl="10ms")
    test.send("rates", [rate(10, 100)]).send("orders", [order(15)]).run_batch()
    assert rates_of(test.advance_watermark(1_000_000)[results.name]) == [(15, 100)]


def test_a_key_is_forgotten_when_its_last_version_has_expired() -> None:
    test, _ = harness(versions_ttl="10ms")
    test.send("rates", [rate(10, 100)]).run_batch()
    test.advance_watermark(20)
    assert test.pieces == 1
    test.advance_watermark(21)
    assert test.pieces == 0


def test_a_version_that_lasts_forever_is_never_forgotten_until_the_end() -> None:
    test, results = harness()
    test.send("rates", [rate(10, 100)]).run_batch()
    test.advance_watermark(10**13)
    test.send("orders", [order(10**13)]).run_batch()
    test.finish()
    assert rates_of(test.output(results)) == [(10**13, 100)]
    assert test.pieces == 0


def test_versions_that_no_row_can_ask_for_are_counted_and_not_kept() -> None:
    test, _ = harness()
    test.send("rates", [rate(10, 100), rate(20, 200)]).run_batch()
    test.advance_watermark(30)
    test.send("rates", [rate(5, 1), rate(19, 2), rate(25, 3), rate(29, 4), rate(40, 5)]).run_batch()
    assert test.last.counts["orders.join"] == {"on_time": 2, "superseded": 3}


def test_versions_that_come_too_late_to_live_are_counted_and_not_kept() -> None:
    test, _ = harness(versions_ttl="10ms")
    test.advance_watermark(100)
    test.send("rates", [rate(89, 1), rate(90, 2)]).run_batch()
    assert test.last.counts["orders.join"] == {"expired": 1, "on_time": 1}


def test_replaced_versions_leave_the_state() -> None:
    test, _ = harness()
    for number in range(80):
        test.send("rates", [rate(number, number, currency) for currency in ("EUR", "USD")]).run_batch()
        test.advance_watermark(number)
    held = sum(state["rows"] for state in test.last.state.values())
    assert held < 60


def test_late_rows_have_the_columns_of_the_left_side() -> None:
    test, results = harness(suffixes=("_order", "_rate"))
    test.advance_watermark(100)
    test.send("orders", [order(50)]).run_batch()
    columns = test.output(results.late).columns
    assert columns == ["currency", "ts", "amount", "event_time", "late_by_ms", "watermark", "step"]
    assert test.output(results.late)["late_by_ms"].to_list() == [50]


def test_a_late_row_that_is_processed_meets_the_version_of_its_time_at_once() -> None:
    test, results = harness(late="process", versions_ttl="1s")
    test.send("rates", [rate(10, 100), rate(20, 200), rate(30, 300)]).run_batch()
    test.advance_watermark(100)
    shown = test.send("orders", [order(25)]).send("rates", [rate(24, 240)]).run_batch()
    assert rates_of(shown[results.name]) == [(25, 240)]
    assert test.last.counts["orders.join"] == {"processed_late": 1, "on_time": 1, "rows": 1}


def test_rows_without_a_key_meet_nothing() -> None:
    test, results = harness(how="left")
    test.send("rates", [rate(1, 100, None)]).send("orders", [order(5, None)]).run_batch()
    assert test.last.counts["orders.join"] == {"on_time": 1, "unmatched": 1}
    test.finish()
    assert rates_of(test.output(results)) == [(5, None)]


def test_rows_that_find_no_version_are_counted_where_they_are_not_shown() -> None:
    test, results = harness()
    test.send("orders", [order(5)]).run_batch()
    test.advance_watermark(6)
    assert test.last.counts["orders.join"] == {"without_version": 1}
    assert test.output(results).is_empty()


def test_changes_of_a_database_are_versions() -> None:
    changes = (
        sw.stream("customers", sw.sources.log("nowhere"))
        .decode(sw.formats.debezium("id long, tier string", key="id"))
        .where("op in ('insert', 'update', 'delete', 'snapshot')")
        .event_time("source_time")
        .select("id", "op", tier=pl.col("after").struct.field("tier"))
    )
    orders = stream("orders", "customer long, ts long")
    results = orders.key_by("customer").join_as_of(
        changes.key_by("id"), how="left", versions_ttl=sw.FOREVER, deleted="op = 'delete'"
    )

    def change(op: str, tier: str, at: int) -> dict[str, Any]:
        row = {"id": 7, "tier": tier}
        before, after = (row, None) if op == "d" else (None, row)
        return {"op": op, "before": before, "after": after, "source": {"ts_ms": at}, "ts_ms": at}

    test = Harness(pipeline(results))
    test.send("customers", [change("c", "basic", 100), change("u", "gold", 200), change("d", "gold", 300)])
    test.send("orders", [{"customer": 7, "ts": ts} for ts in (50, 150, 250, 350)])
    test.finish()
    rows = sorted(test.output(results).select("ts", "tier").rows())
    assert rows == [(50, None), (150, "basic"), (250, "gold"), (350, None)]


@pytest.mark.parametrize("ttl, lasts", [("30d", ", for 30d at most"), (sw.FOREVER, "")])
def test_explain_says_what_is_kept(ttl: Any, lasts: str) -> None:  # noqa: ANN401  a duration, or forever
    text = pipeline(joined(versions_ttl=ttl, how="left", deleted="op = 'delete'")).explain()
    for line in (
        "join      as of, left, currency = currency",
        f"version   the newest up to the row's time{lasts}",
        "deleted   op = 'delete'",
        "keeps     left rows until the watermark is past their time, when they come out",
        f"keeps     of each key the version valid at the watermark, and later ones{lasts}",
    ):
        assert line + "\n" in text
