"""What an event or a timer sees of state depends on its own time, and not on how far the watermark has jumped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.plan.streams import Results
from slackwater.testing import Harness

MS = sw.duration("1ms")
ORDERS = pytest.mark.parametrize("order", ["arrival", "event_time"])


class Seen(sw.Process):
    """Writes down each event, sets timers after it as `after` says, and shows what is known."""

    value = sw.value_state("long", ttl="60ms")
    items = sw.list_state("long", ttl="60ms")
    members = sw.set_state("long", ttl="60ms")
    table = sw.map_state("long", "long", ttl="60ms")

    def __init__(self, *after: int, clock: Any = "event") -> None:  # noqa: ANN401  one of two words
        self.after, self.clock = after, clock

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"known": self._known()}
        self._write(event["ts"])
        for after in self.after:
            ctx.set_timer(ctx.event_time + after * MS, clock=self.clock)

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"known": self._known()}

    def _write(self, ts: int) -> None:
        self.value.set(ts)
        self.items.add(ts)
        self.members.add(ts)
        self.table.set(ts, ts)

    def _known(self) -> str:
        several = [self.items.get(), sorted(self.members), sorted(self.table.keys())]
        assert [len(self.items), len(self.members), len(self.table)] == [len(each) for each in several]
        assert several[0] == sorted(several[0]) == several[1] == several[2]
        return f"{self.value.get()} {several[0]}"


class Writing(Seen):
    """Writes in its timers, too."""

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield from super().on_timer(when, ctx)
        self._write((when - EPOCH) // MS)


def started(process: sw.Process, order: Any = "arrival", output: str = "known string") -> tuple[Harness, Results]:  # noqa: ANN401  one of two words
    """Return a pipeline of one process, in which everything ends in memory."""
    events = sw.stream("events", sw.testing.rows_source("key string, ts long")).event_time("ts")
    results = events.key_by("key").process(process, output=output, order=order)
    ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
    ends += [results.late.drop()] if order == "event_time" else []
    return Harness(sw.Pipeline("p", *ends, key_groups=1)), results


def sent(test: Harness, *times: int) -> None:
    """Send events of one key in one batch."""
    test.send("events", [{"key": "a", "ts": ts} for ts in times])
    test.run_batch()


def known(test: Harness, results: Results) -> list[tuple[int, str]]:
    """Return what every event and timer has seen, by its time."""
    found = test.output(results)
    return list(zip(found["event_time"].dt.epoch("ms"), found["known"], strict=True))


@ORDERS
@pytest.mark.parametrize("jump", [60, 61, 240, None])
def test_a_timer_sees_the_state_of_its_own_time_however_far_the_watermark_jumps(order: str, jump: int | None) -> None:
    test, results = started(Seen(30, 60, 61), order)
    sent(test, 0)
    if jump is not None:
        test.advance_watermark(jump)
    test.finish()
    assert known(test, results) == [(0, "None []"), (30, "0 [0]"), (60, "0 [0]"), (61, "None []")]


@ORDERS
def test_what_a_timer_writes_lives_from_the_time_of_the_timer_on(order: str) -> None:
    test, results = started(Writing(30, 80, 150), order)
    sent(test, 0)
    test.finish()
    assert known(test, results) == [(0, "None []"), (30, "0 [0]"), (80, "30 [30]"), (150, "None []")]


@ORDERS
def test_events_of_one_batch_see_the_state_of_their_own_time(order: str) -> None:
    test, results = started(Seen(), order)
    sent(test, 0, 60, 100, 1000)
    test.finish()
    assert known(test, results) == [(0, "None []"), (60, "0 [0]"), (100, "60 [60]"), (1000, "None []")]


def test_an_event_that_comes_out_of_order_sees_what_a_later_one_did_not() -> None:
    class Adding(Seen):
        """Writes to the list alone."""

        def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
            yield {"known": str(self.items.get())}
            self.items.add(event["ts"])

    test, results = started(Adding())
    sent(test, 0, 100, 50)
    assert sorted(known(test, results)) == [(0, "[]"), (50, "[0, 100]"), (100, "[]")]


def test_behind_the_watermark_an_event_is_judged_at_the_watermark() -> None:
    test, results = started(Seen())
    sent(test, 0)
    test.advance_watermark(61)
    sent(test, 30)
    assert known(test, results) == [(0, "None []"), (30, "None []")]


@ORDERS
def test_at_the_end_a_timer_of_processing_time_sees_what_the_event_that_set_it_has_written(order: str) -> None:
    test, results = started(Seen(10**13, clock="processing"), order)
    sent(test, 0)
    test.finish()
    assert known(test, results) == [(0, "None []"), (0, "0 [0]")]
