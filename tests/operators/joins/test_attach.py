"""`attach`: a branch of a stream, back on the rows it was computed from."""

from __future__ import annotations

from typing import Any

import polars as pl

import slackwater as sw
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness
from tests.operators.joins.sides import stream

PAYMENTS = "id string, card string, ts long, amount long"


def payment(number: int, ts: int, amount: int = 10, card: str = "a") -> dict[str, Any]:
    return {"id": f"p{number}", "card": card, "ts": ts, "amount": amount}


def probed(payments: Stream) -> Stream:
    """Return the large payments that follow a small one of the same card."""
    found = payments.key_by("card").match(
        sw.sequence(small="amount < 2", large="amount > 100", within="1m"), name="tested"
    )
    return found.select(id="large_id", tested_by="small_id")


def run(results: Results, *batches: list[dict[str, Any]]) -> Harness:
    late, dead_letters = sw.sinks.memory(), sw.sinks.memory()
    harness = Harness(sw.Pipeline("p", results.to(sw.sinks.memory()), late=late, dead_letters=dead_letters))
    for batch in batches:
        harness.send("payments", batch)
        harness.run_batch()
    return harness


def test_every_row_comes_out_once_with_what_the_branch_found() -> None:
    payments = stream("payments", PAYMENTS)
    checked = payments.attach(probed(payments), on="id", name="checked")
    harness = run(checked, [payment(1, 0, amount=1), payment(2, 5), payment(3, 9, amount=500)])
    harness.finish()
    found = harness.output(checked)
    assert found.columns == ["id", "card", "ts", "amount", "tested_by", "event_time"]
    assert sorted(found.select("id", "tested_by").rows()) == [("p1", None), ("p2", None), ("p3", "p1")]
    assert harness.pieces == 0


def test_row_without_a_partner_comes_out_when_the_watermark_passes_it() -> None:
    """
    row       p1                 p2
              0                  20
    watermark ──────────── 0 ────────── 20: p1 can have no partner any more
    """
    payments = stream("payments", PAYMENTS)
    checked = payments.attach(payments.where("amount > 100").select("id", flag="amount"), on="id", name="checked")
    harness = run(checked, [payment(1, 0)], [])
    assert harness.output(checked).is_empty()
    harness.send("payments", [payment(2, 20)]).run_batch()
    harness.run_batch()
    assert harness.output(checked).select("id", "flag").rows() == [("p1", None)]


def test_row_comes_out_at_once_with_a_partner_of_the_same_batch() -> None:
    payments = stream("payments", PAYMENTS)
    checked = payments.attach(payments.where("amount > 100").select("id", flag="amount"), on="id", name="checked")
    harness = run(checked, [payment(1, 0, amount=500)])
    assert harness.output(checked).select("id", "flag").rows() == [("p1", 500)]


def test_same_key_at_another_time_is_no_partner() -> None:
    payments = stream("payments", PAYMENTS)
    checked = payments.attach(payments.where("amount > 100").select("id", flag="amount"), on="id", name="checked")
    harness = run(checked, [payment(1, 0), payment(1, 1, amount=500)])
    harness.finish()
    assert sorted(harness.output(checked).select("ts", "flag").rows()) == [(0, None), (1, 500)]


def test_row_of_the_branch_without_a_row_of_the_stream_is_left_out() -> None:
    payments = stream("payments", PAYMENTS)
    large = payments.where("amount > 100").attach(payments.select("id", spent="amount"), on=["id"], name="large")
    harness = run(large, [payment(1, 0), payment(2, 1, amount=500)])
    harness.finish()
    assert harness.output(large).select("id", "spent").rows() == [("p2", 500)]


def test_row_that_is_late_for_the_branch_alone_comes_out_with_nulls() -> None:
    payments = stream("payments", PAYMENTS)
    checked = payments.attach(probed(payments), on="id", name="checked")
    harness = run(checked, [payment(1, 0, amount=1), payment(2, 50)], [payment(3, 9, amount=500)])
    harness.finish()
    assert harness.output("late")["step"].to_list() == ["tested"]
    assert ("p3", None) in harness.output(checked).select("id", "tested_by").rows()


def test_sliding_counts_are_attached_to_the_events_they_end_with() -> None:
    payments = stream("payments", PAYMENTS)
    counts = payments.key_by("card").window(sw.sliding("10ms"), name="counts").aggregate(recent=sw.count())
    counted = payments.attach(counts.select("card", "recent"), on="card", name="counted")
    harness = run(counted, [payment(1, 0), payment(2, 5), payment(3, 6, card="b"), payment(4, 12)])
    harness.finish()
    assert sorted(harness.output(counted).select("id", "recent").rows()) == [("p1", 1), ("p2", 2), ("p3", 1), ("p4", 2)]


def test_branches_of_the_results_of_windows_are_attached() -> None:
    payments = stream("payments", PAYMENTS)
    counts = payments.key_by("card").window(sw.tumbling("10ms"), name="counts").aggregate(n=sw.count())
    checked = counts.select("card", "n").attach(counts.select("card", many=pl.col("n") > 1), on="card", name="checked")
    harness = run(checked, [payment(1, 0), payment(2, 5), payment(3, 15)])
    harness.finish()
    assert sorted(harness.output(checked).select("n", "many").rows()) == [(1, False), (2, True)]


def test_name_of_the_step_is_that_of_the_stream() -> None:
    payments = stream("payments", PAYMENTS)
    assert payments.attach(payments.select("id"), on="id").name == "payments.attach"
