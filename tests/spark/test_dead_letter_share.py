"""The share of dead letters counts those of keyed steps as well as those of row functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.losses import Losses
from slackwater.plan.streams import Stream
from slackwater.spark.dead_letter_share import DeadLetterShare, DeadLetterWarning
from slackwater.testing import Harness


class Fails(sw.Process):
    """Fails on every event from `least` on."""

    def __init__(self, least: int) -> None:
        self.least = least

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, int]]:
        if event["v"] >= self.least:
            raise ValueError("too large")
        yield {"n": event["v"]}


class Tells(sw.Process):
    """Fails on every event, on one of them with another message."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        raise ValueError("a rare message" if event["v"] == 7 else "the frequent message")


class Alarms(sw.Process):
    """Sets a timer on every event; all of them fail."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        ctx.set_timer(ctx.event_time)

    def on_timer(self, when: datetime, ctx: sw.Context) -> None:
        raise ValueError("no")


def events() -> Stream:
    return sw.stream("events", sw.testing.rows_source("k long, v long, ts long")).event_time("ts")


def stats(pipeline: sw.Pipeline, number: int = 20) -> BatchStats:
    """Return the statistics of a batch of `number` events, each with its own key."""
    harness = Harness(pipeline)
    harness.send("events", [{"k": v, "v": v, "ts": 1_000} for v in range(number)])
    harness.run_batch()
    return harness.last


def processed(process: sw.Process, of: Stream) -> sw.Pipeline:
    results = of.key_by("k").process(process, output="n long", name="works")
    return sw.Pipeline("p", results.to(sw.sinks.memory()), of.dead_letters.drop())


def test_events_that_fail_in_a_process_count_for_their_stream() -> None:
    share = DeadLetterShare()
    with pytest.warns(DeadLetterWarning, match=r"20 of 20 records of stream `events` \(100\.0%\).*`failed`.*too large"):
        share.note(stats(processed(Fails(0), events())))
    with pytest.raises(RunError, match=r"20 of 20 records of stream `events` \(100\.0%\)") as caught:
        share.check(0.5)
    assert caught.value.code == "DEAD_LETTERS_EXCEEDED"


def test_dead_letters_of_row_functions_and_of_keyed_steps_add_up() -> None:
    found = stats(processed(Fails(15), events().validate(large=pl.col("v") >= 5)))
    assert (found.losses["events"].rows, found.losses["events"].dead) == (20, 10)
    assert found.losses["events"].reasons == {"invalid": 5, "failed": 5}


def test_a_record_that_gives_two_dead_letters_in_front_counts_once() -> None:
    stream = events()
    both = [stream.validate(large=pl.col("v") >= 5).to(sw.sinks.memory()) for _ in range(2)]
    found = stats(sw.Pipeline("p", *both, stream.dead_letters.drop()))
    assert found.streams["events"].dead == 10
    assert found.losses["events"].dead == 5


def test_results_that_fail_are_a_share_of_the_step_s_results() -> None:
    stream = events()
    results = stream.key_by("k").process(Fails(99), output="n long", name="works").validate(none=pl.col("n") < 0)
    ends = (results.to(sw.sinks.memory()), results.dead_letters.drop(), stream.dead_letters.drop())
    share = DeadLetterShare()
    with pytest.warns(DeadLetterWarning, match=r"20 of 20 results of `works` \(100\.0%\) are dead letters"):
        share.note(stats(sw.Pipeline("p", *ends)))
    assert share.losses["events"].dead == 0


def test_timers_that_fail_are_dead_letters_of_their_step() -> None:
    harness = Harness(processed(Alarms(), events()))
    harness.send("events", [{"k": k, "v": 1, "ts": 1_000} for k in range(12)])
    harness.run_batch()
    harness.advance_watermark(5_000)
    share = DeadLetterShare()
    with pytest.warns(DeadLetterWarning, match=r"12 of 12 results of `works`.*`timer_failed`"):
        share.note(harness.last)


def test_rows_that_fail_in_a_later_run_than_they_were_read_in_are_at_most_all_of_them() -> None:
    late = Losses(rows=1, dead=3, reasons=Counter(failed=3), examples={"failed": "no"})
    share = DeadLetterShare(losses={"events": late})
    with pytest.raises(RunError, match=r"3 of 3 .*\(100\.0%\)"):
        share.check(0.9)


def test_one_bad_stream_is_not_hidden_by_a_large_good_one() -> None:
    bad = Losses(rows=10, dead=10, reasons=Counter(failed=10), examples={"failed": "no"})
    share = DeadLetterShare(losses={"large": Losses(rows=1_000), "bad": bad})
    with pytest.raises(RunError, match=r"10 of 10 results of `bad`"):
        share.check(0.5)


def test_the_warning_quotes_the_most_frequent_message() -> None:
    share = DeadLetterShare()
    with pytest.warns(DeadLetterWarning, match="for example: .*frequent"):
        share.note(stats(processed(Tells(), events())))
