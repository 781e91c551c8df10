"""Timers at the end of a bounded run: those that are set fire, and those that they set in turn do not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.process.test_time_of_state import MS, ORDERS, sent, started


class Heartbeat(sw.Process):
    """Beats every 30 ms from the first event on, for ever."""

    beats = sw.value_state("long", ttl=sw.FOREVER)

    def __init__(self, name: str = "", clock: Any = "event") -> None:  # noqa: ANN401  one of two words
        self.name, self.clock = name, clock

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        if self.beats.get() is None:
            self.beats.set(0)
            self._set(EPOCH + event["ts"] * MS, ctx)

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        self.beats.set(self.beats.get() + 1)
        self._set(when, ctx)
        yield {"at": (when - EPOCH) // MS}

    def _set(self, last: datetime, ctx: sw.Context) -> None:
        ctx.set_timer(last + 30 * MS, clock=self.clock, name=self.name)


class Both(Heartbeat):
    """Sets timers of both clocks, and fails while it sets the second of them."""

    def _set(self, last: datetime, ctx: sw.Context) -> None:
        ctx.set_timer(last + 30 * MS)
        ctx.set_timer(last + 30 * MS, clock="processing")
        if self.beats.get() == 2:
            raise ValueError("on purpose")


def beats(test: Harness, results: Results) -> list[int]:
    """Return when it beat."""
    return test.output(results)["at"].to_list()


def dropped(test: Harness) -> int:
    """Return how many timers the last batch has dropped."""
    return test.last.counts["events.process"]["dropped_timers"]


@ORDERS
def test_a_timer_that_sets_itself_again_ends_with_the_run(order: str) -> None:
    for name in ("", "beat"):
        test, results = started(Heartbeat(name), order, "at long")
        sent(test, 0)
        test.advance_watermark(70)
        assert beats(test, results) == [30, 60]
        test.finish()
        assert beats(test, results) == [30, 60, 90]
        assert dropped(test) == 1


def test_between_events_that_waited_for_the_end_timers_set_each_other() -> None:
    test, results = started(Heartbeat(), "event_time", "at long")
    sent(test, 0, 100)
    test.finish()
    assert beats(test, results) == [30, 60, 90, 120]
    assert dropped(test) == 1


@ORDERS
def test_a_timer_of_processing_time_that_sets_itself_again_ends_with_the_run(order: str) -> None:
    test, results = started(Heartbeat(clock="processing"), order, "at long")
    test.now_ms = 0
    sent(test, 10**9)
    test.finish()
    assert beats(test, results) == [10**9 + 30]
    assert dropped(test) == 1


@ORDERS
def test_at_the_end_no_clock_sets_timers_of_the_other_and_those_of_a_call_that_fails_are_not_counted(
    order: str,
) -> None:
    test, results = started(Both(), order, "at long")
    test.now_ms = 0
    sent(test, 10**9)
    test.finish()
    assert beats(test, results) == [10**9 + 30]
    assert test.output("events.dead_letters")["reason"].to_list() == ["timer_failed"]
    assert dropped(test) == 2


@ORDERS
def test_a_bounded_run_of_a_heartbeat_comes_to_its_end(order: str) -> None:
    test, results = started(Heartbeat(), order, "at long")
    done = sw.testing.run(test.pipeline, {"events": [{"key": key, "ts": 0} for key in "abc"]})
    assert done[results]["at"].to_list() == [30, 30, 30]
