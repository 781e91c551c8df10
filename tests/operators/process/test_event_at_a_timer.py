"""An event and a timer at the same time: the event comes first, as long as it is not late.

    event at 0 sets a timer at 30
0 ──────────── 30 ──── 31
               │ an event at 30 is on time while the watermark is at most 30
               └ so the timer fires once the watermark has passed 30
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.process.test_time_of_state import MS, ORDERS, sent, started


class Watch(sw.Process):
    """Watches for another event within 30 ms of the first; it is missed if the timer comes before it."""

    is_seen = sw.value_state("boolean", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"known": f"event {event['ts']}"}
        if event["ts"] == 0:
            ctx.set_timer(ctx.event_time + 30 * MS)
        else:
            self.is_seen.set(True)

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"known": "seen" if self.is_seen.get() else "missed"}


def shown(test: Harness, results: Results) -> list[str]:
    return test.output(results)["known"].to_list()


BATCHES = pytest.mark.parametrize(
    "batches", [[[0, 30]], [[0], [30]], [[30, 0]], [[0], [], [30]], [[0], [30], []]], ids=str
)


@ORDERS
@BATCHES
@pytest.mark.parametrize("watermark", [None, 29, 30])
def test_an_event_at_the_time_of_a_timer_comes_before_it(
    order: str, batches: list[list[int]], watermark: int | None
) -> None:
    test, results = started(Watch(), order)
    for times in batches:
        sent(test, *times)
        if watermark is not None and 0 in times:
            test.advance_watermark(watermark)
    test.finish()
    assert "seen" in shown(test, results)
    assert "missed" not in shown(test, results)


@ORDERS
@pytest.mark.parametrize("watermark, missed", [(29, 0), (30, 0), (31, 1)])
def test_a_timer_fires_once_the_watermark_has_passed_it(order: str, watermark: int, missed: int) -> None:
    test, results = started(Watch(), order)
    sent(test, 0)
    test.advance_watermark(watermark)
    assert shown(test, results).count("missed") == missed


def test_an_event_at_the_time_of_a_timer_that_has_fired_is_late() -> None:
    test, results = started(Watch(), "event_time")
    sent(test, 0)
    test.advance_watermark(31)
    sent(test, 30)
    assert test.last.counts["events.process"]["late"] == 1
    test.finish()
    assert shown(test, results) == ["event 0", "missed"]


@ORDERS
@BATCHES
def test_an_absence_and_a_timer_agree_on_an_event_at_the_end(order: str, batches: list[list[int]]) -> None:
    events = sw.stream("events", sw.testing.rows_source("key string, ts long")).event_time("ts")
    keyed = events.key_by("key")
    missed = keyed.match(sw.absent(after="ts = 0", expect="ts > 0", within="30ms"), name="absent")
    watched = keyed.process(Watch(), output="known string", order=order, name="watched")  # type: ignore[arg-type]  # one of two words
    ends = [missed.to(sw.sinks.memory()), watched.to(sw.sinks.memory()), events.dead_letters.drop(), missed.late.drop()]
    ends += [watched.late.drop()] if order == "event_time" else []
    test = Harness(sw.Pipeline("p", *ends, key_groups=1))
    for times in batches:
        test.send("events", [{"key": "a", "ts": ts} for ts in times]).run_batch()
        if 0 in times:
            test.advance_watermark(30)
    test.finish()
    assert test.output(missed).height == test.output(watched).filter(pl.col("known") == "missed").height == 0
