"""Patterns before and after other steps: no result is late for the next step, whatever it waited for."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.operators.patterns import Pattern
from slackwater.plan.streams import Output, Results, Stream
from slackwater.testing import Harness, rows_source
from tests.operators.patterns.matched import ms

PATTERNS = {
    "fixed": sw.sequence(a="kind = 'a'", b="kind = 'b'", within="20ms"),
    "repeated": sw.sequence({"a": "kind = 'a'", "b+": "kind = 'b'"}, within="20ms"),
    "referring": sw.sequence(a="kind = 'a'", b="kind = 'b' and v > a.v", within="20ms"),
    "absent": sw.absent(after="kind = 'a'", expect="kind = 'b'", within="8ms"),
}


def events() -> Stream:
    source = rows_source("key string, ts long, kind string, v long")
    return sw.stream("events", source).event_time("ts", out_of_orderness="5ms")


def harness(stream: Stream, *steps: Results) -> Harness:
    ended: list[Stream | Output] = [out for step in steps for out in (step, step.late)]
    return Harness(sw.Pipeline("p", *(out.to(sw.sinks.memory()) for out in (*ended, stream.dead_letters))))


def feed(run: Harness, count: int = 30) -> None:
    """Send rows one by one, each in a batch of its own."""
    for at in range(count):
        row: dict[str, Any] = {"key": "k", "ts": 3 * at, "kind": "abbac"[at % 5], "v": (7 * at) % 11}
        run.send("events", [row]).run_batch()
    run.finish()


@pytest.mark.parametrize("name", PATTERNS)
def test_matches_are_counted_by_a_window_and_none_is_late(name: str) -> None:
    stream = events()
    found = stream.key_by("key").match(PATTERNS[name])
    counts = found.key_by("key").window(sw.tumbling("10ms"), name="counts").aggregate(n=sw.count())
    run = harness(stream, found, counts)
    feed(run)
    times = [ms(moment) // 10 for moment in run.output(found)["event_time"]]
    assert len(times) > 3
    assert run.output(counts.late).is_empty()
    windows = run.output(counts)
    starts = [ms(moment) // 10 for moment in windows["window_start"]]
    assert dict(zip(starts, windows["n"], strict=True)) == {time: times.count(time) for time in times}
    assert run.pieces == 0


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_of_matches_takes_every_match(name: str) -> None:
    stream = events()
    found = stream.key_by("key").match(PATTERNS[name])
    pairs = found.key_by("key").match(sw.times(found="true", n=2, within="1h"), name="pairs")
    run = harness(stream, found, pairs)
    feed(run)
    assert run.output(pairs.late).is_empty()
    assert run.output(pairs).height == run.output(found).height // 2
    assert run.pieces == 0


def test_a_pattern_of_windows_sees_them_in_their_order() -> None:
    stream = events()
    counts = stream.key_by("key").window(sw.tumbling("10ms")).aggregate(n=sw.count())
    pattern: Pattern = sw.sequence(few="n = 1", many="n > few.n", within="20ms", contiguity="strict")
    found = counts.key_by("key").match(pattern, name="rises")
    run = harness(stream, counts, found)
    for ts in (1, 11, 12, 21, 22, 41, 51, 52, 53):
        run.send("events", [{"key": "k", "ts": ts, "kind": "a", "v": 0}]).run_batch()
    run.finish()
    assert run.output(found).select("few_n", "many_n").rows() == [(1, 2), (1, 3)]
    assert [ms(moment) for moment in run.output(found)["event_time"]] == [19, 59]
    assert run.output(found.late).is_empty()
