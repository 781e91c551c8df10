"""Every event of a process is in one account: on time, late or dead; timers and results have counts of their own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from tests.operators.process.totals import event
from tests.property.accounts import Counted


class Failing(sw.Process):
    """Fails on a two; every other event sets a timer, which fails."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        if event["x"] == 2:
            raise ValueError("two")
        ctx.set_timer(ctx.event_time)
        yield {"n": event["x"]}

    def on_timer(self, when: datetime, ctx: sw.Context) -> None:
        raise KeyError(when)


@pytest.mark.parametrize(
    "order, accounts", [("arrival", {"on_time": 4, "dead": 1}), ("event_time", {"on_time": 3, "dead": 1, "late": 1})]
)
def test_timers_and_results_that_fail_do_not_disturb_the_account_of_events(
    order: Any,  # noqa: ANN401  one of two words
    accounts: dict[str, int],
) -> None:
    events = sw.stream("events", sw.testing.rows_source("key string, ts long, x long")).event_time("ts")
    results = events.key_by("key").process(Failing(), output="n long", order=order, name="failing")
    inverse = results.map(lambda rows: rows.with_columns(n=pl.Series([1 // n for n in rows["n"]], dtype=pl.Int64)))
    late = [results.late.drop()] if order == "event_time" else []
    ends = [inverse.to(sw.sinks.memory()), results.dead_letters.drop(), events.dead_letters.drop(), *late]
    test = Counted(sw.Pipeline("p", *ends))
    test.send("events", [event("a", 100, 1), event("b", 100, 2), event("a", 101, 0)]).run_batch()
    test.send("events", [event("a", 50, 1), event("c", 200, 1)])
    test.finish()
    counts = test.counts["failing"]
    assert {what: counts[what] for what in ("on_time", "dead", "late") if counts[what]} == accounts
    assert counts["failed_timers"] == accounts["on_time"]
    assert counts["dead_results"] == 1
