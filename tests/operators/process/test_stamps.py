"""A write never shortens the life of what it replaces, whichever call makes it and however late that is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.process.test_time_of_state import MS, sent, started
from tests.operators.process.totals import Totals, event, harness, rows_of


class Sum(sw.Process):
    """Adds one with each event, and one with each timer, in every kind of state."""

    value = sw.value_state("long", ttl="60ms")
    items = sw.list_state("long", ttl="60ms")
    table = sw.map_state("string", "long", ttl="60ms")
    members = sw.set_state("long", ttl="60ms")

    def __init__(self, after: int | None = None, clock: Any = "event") -> None:  # noqa: ANN401  one of two words
        self.after, self.clock = after, clock

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        self._add()
        if self.after is not None:
            at = ctx.event_time if self.clock == "event" else ctx.processing_time
            ctx.set_timer(at + self.after * MS, clock=self.clock, name=str(event["ts"]))
        yield self._known()

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        self._add()
        yield self._known()

    def _add(self) -> None:
        self.value.set((self.value.get() or 0) + 1)
        self.items.set([*self.items, 1])
        self.table.set("n", self.table.get("n", 0) + 1)
        self.members.add(0)
        self.members.add(len(self.items))

    def _known(self) -> dict[str, Any]:
        assert self.value.get() == len(self.items) == self.table.get("n"), (self.value.get(), self.items.get())
        assert 0 in self.members
        return {"n": self.value.get()}


def counted(test: Harness, results: Results) -> list[int]:
    assert test.output("events.dead_letters")["message"].to_list() == []
    return test.output(results).sort("n")["n"].to_list()


def test_the_timer_of_a_late_event_writes_at_the_time_of_the_call_that_set_it() -> None:
    test, results = started(Sum(after=30), output="n long")
    test.advance_watermark(1000)
    sent(test, 1000)
    sent(test, 800)
    test.advance_watermark(1001)
    sent(test, 1020)
    assert counted(test, results) == [1, 2, 3, 4]


def test_a_timer_behind_the_newest_event_does_not_age_what_that_wrote() -> None:
    test, results = started(Sum(after=30), output="n long")
    sent(test, 0)
    sent(test, 60)
    test.advance_watermark(40)
    sent(test, 120)
    assert counted(test, results) == [1, 2, 3, 4]


def test_an_event_that_comes_out_of_order_does_not_age_what_a_later_one_wrote() -> None:
    test, results = started(Sum(), output="n long")
    sent(test, 50, 0, 110)
    assert counted(test, results) == [1, 2, 3]


def test_what_was_cleared_leaves_no_stamp() -> None:
    class Once(Sum):
        """Keeps the newest alone."""

        def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
            yield {"n": self.value.get()}
            self.value.clear()
            self.value.set(event["ts"])

    test, results = started(Once(), output="n long")
    sent(test, 100, 0, 61)
    found = test.output(results).select("n", pl.col("event_time").dt.epoch("ms")).rows()
    assert sorted(found, key=str) == [(100, 0), (None, 100), (None, 61)]


@pytest.mark.parametrize("late", [800, 1000])
def test_at_the_end_timers_of_processing_time_that_late_events_set_see_each_others_writes(late: int) -> None:
    test, results = started(Sum(after=10**9, clock="processing"), output="n long")
    test.advance_watermark(1000)
    sent(test, late)
    sent(test, 1001)
    test.finish()
    assert counted(test, results) == [1, 2, 3, 4]


def test_frames_that_come_out_of_order_do_not_age_the_state_of_later_ones() -> None:
    test, results = harness(Totals())
    for ts in (5, 0, 15):
        test.send("events", [event("a", ts)]).run_batch()
    assert [seen for _, _, seen, _ in rows_of(test, results)] == [1, 2, 3]
