"""What a job says once, from the statistics of its batches."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.batch_stats import BatchStats, StreamStats
from slackwater.eventtime.clock import Clock, PartitionTime, StreamTime
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.spark.alerts import (
    HotKeyWarning,
    SchemaWarning,
    SlackWarning,
    report_schemas,
    report_short_slack,
    report_skew,
)
from slackwater.spark.dead_letter_share import DeadLetterShare, DeadLetterWarning
from slackwater.testing import Harness

NOW_MS = 10_000_000


def plan_with(slack: str) -> sw.Pipeline:
    rows = sw.stream("rows", sw.testing.rows_source("ts long")).event_time("ts", out_of_orderness=slack)
    return sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop())


def sketch_of(late_ms: int, *, rows: int) -> LatenessSketch:
    """Return a sketch in which every other row is `late_ms` behind."""
    sketch = LatenessSketch.empty()
    sketch.observe(np.tile(np.array([10_000_000, 10_000_000 - late_ms]), rows // 2), 0)
    return sketch


def report(
    measured: dict[str, dict[str, LatenessSketch]],
    reported: set[str],
    *,
    slack: str = "2s",
    newest: Mapping[str, int] | None = None,
) -> None:
    """Let a job say what it measured, when its partitions have come to `newest`."""
    partitions = {name: PartitionTime(max_ts_ms=at) for name, at in (newest or {}).items()}
    clock = Clock(batch=1, streams={"rows": StreamTime(partitions=partitions)})
    report_short_slack(plan_with(slack).plan(), measured, clock, now_ms=NOW_MS, reported=reported)


def test_slack_below_the_measured_p99_is_reported_once() -> None:
    measured = {"rows": {"0": sketch_of(5_000, rows=20_000)}}
    reported: set[str] = set()
    with pytest.warns(SlackWarning, match=r"`rows` has an out-of-orderness of 2s, but 50\.0% of its rows arrive later"):
        report(measured, reported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(measured, reported)


@pytest.mark.parametrize("slack, rows", [("5s", 20_000), ("2s", 2_000)])
def test_enough_slack_or_too_few_rows_say_nothing(slack: str, rows: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report({"rows": {"0": sketch_of(5_000, rows=rows)}}, set(), slack=slack)


AHEAD = NOW_MS + 600_001


def test_partition_with_an_event_far_ahead_does_not_ask_for_more_slack() -> None:
    measured = {"rows": {"0": sketch_of(0, rows=40_000), "1": sketch_of(5_000, rows=30_000)}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(measured, set(), newest={"0": NOW_MS, "1": AHEAD})
    with pytest.warns(SlackWarning):
        report(measured, set(), newest={"0": NOW_MS, "1": AHEAD - 1})


def test_events_of_another_time_are_measured_as_they_are() -> None:
    measured = {"rows": {"0": sketch_of(5_000, rows=20_000), "1": sketch_of(0, rows=10_000)}}
    with pytest.warns(SlackWarning):
        report(measured, set(), newest={"0": AHEAD, "1": NOW_MS})


def test_incompatible_schema_is_reported_once_per_stream_and_schema() -> None:
    stream = StreamStats(reasons={"incompatible_schema": Counter({"schema 7 …": 3}), "malformed": Counter({"": 1})})
    stats, reported = BatchStats(streams={"orders": stream}), set[str]()
    with pytest.warns(SchemaWarning, match=r"SCHEMA_INCOMPATIBLE.*stream `orders` cannot .*: schema 7"):
        report_schemas(stats, reported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_schemas(stats, reported)


def test_dead_letters_are_counted_by_reason() -> None:
    rows = sw.stream("rows", sw.sources.log("nowhere")).decode(sw.formats.json("ts long")).event_time("ts")
    harness = Harness(sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.to(sw.sinks.memory())))
    harness.send("rows", ["{", "[]", "{", json.dumps({"ts": None})])
    harness.run_batch()
    counted = {reason: sum(words.values()) for reason, words in harness.last.streams["rows"].reasons.items()}
    assert counted == {"malformed": 2, "not_an_object": 1, "no_event_time": 1}


def records(*lines: str) -> BatchStats:
    """Return the statistics of a batch that reads these lines, as numbers with a time."""
    rows = sw.stream("rows", sw.sources.log("nowhere")).decode(sw.formats.json("v long, ts long")).event_time("ts")
    harness = Harness(sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop()))
    harness.send("rows", list(lines))
    harness.run_batch()
    return harness.last


GOOD, WRONG = '{"v": 1, "ts": 1}', '{"v": "one", "ts": 1}'


def test_share_of_dead_letters_above_a_tenth_is_reported_with_its_reason_and_a_sample() -> None:
    share = DeadLetterShare()
    with pytest.warns(DeadLetterWarning) as told:
        share.note(records("{", *[WRONG] * 19, *[GOOD] * 80))
    [warning] = told
    words = str(warning.message)
    assert words.startswith("[DEAD_LETTERS_MANY]")
    assert "20 of 100 records of stream `rows` (20.0%) are dead letters" in words
    assert "`wrong_type`, for example: " in words
    assert "`v`" in words


def test_share_of_dead_letters_is_reported_once_per_stream_and_reason() -> None:
    share = DeadLetterShare()
    with pytest.warns(DeadLetterWarning):
        share.note(records(*[WRONG] * 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        share.note(records(*[WRONG] * 20))
    with pytest.warns(DeadLetterWarning, match="malformed"):
        share.note(records(*["{"] * 100))


@pytest.mark.parametrize("dead, good", [(10, 90), (9, 0)])
def test_a_tenth_or_a_handful_of_dead_letters_is_not_reported(dead: int, good: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DeadLetterShare().note(records(*[WRONG] * dead, *[GOOD] * good))


def test_dead_letters_of_batches_of_one_record_add_up() -> None:
    share, batch = DeadLetterShare(), records(WRONG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(9):
            share.note(batch)
    with pytest.warns(DeadLetterWarning, match="10 of 10 records"):
        share.note(batch)


@pytest.mark.filterwarnings("ignore::slackwater.spark.dead_letter_share.DeadLetterWarning")
def test_run_with_more_dead_letters_than_it_may_have_fails() -> None:
    share = DeadLetterShare()
    share.check(0.0)  # nothing was read
    share.note(records(*[WRONG] * 50, *[GOOD] * 50))
    share.check(0.5)
    share.note(records(WRONG))
    with pytest.raises(
        RunError, match=r"51 of 101 records of stream `rows` \(50\.5%\), most of them `wrong_type`"
    ) as caught:
        share.check(0.5)
    assert caught.value.code == "DEAD_LETTERS_EXCEEDED"


def skewed(keys: list[str]) -> BatchStats:
    """Return the statistics of a batch whose rows have these keys, in a step that takes whole rows."""
    events = sw.stream("events", sw.testing.rows_source("k string, ts long")).event_time("ts")
    results = events.key_by("k").window(sw.count_window(1_000_000), name="counted").aggregate(n=sw.count())
    harness = Harness(sw.Pipeline("p", results.to(sw.sinks.memory()), events.dead_letters.drop()))
    harness.send("events", [{"k": key, "ts": 1} for key in keys]).run_batch()
    return harness.last


def test_key_with_more_than_a_fifth_of_the_rows_is_named_once() -> None:
    stats, reported = skewed(["hot" if number % 3 else f"k{number}" for number in range(30_000)]), set[str]()
    with pytest.warns(HotKeyWarning, match=r"key `hot` of step `counted` has 67% of the 30,000 rows"):
        report_skew(stats, reported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_skew(stats, reported)


def test_even_keys_and_small_batches_are_not_called_hot() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_skew(skewed([f"k{number % 10}" for number in range(30_000)]), set())
        report_skew(skewed(["hot"] * 100), set())


def test_windows_count_no_keys_because_front_combines_them() -> None:
    events = sw.stream("events", sw.testing.rows_source("k string, ts long")).event_time("ts")
    counts = events.key_by("k").window(sw.tumbling("1s")).aggregate(n=sw.count())
    harness = Harness(sw.Pipeline("p", counts.to(sw.sinks.memory()), counts.late.drop(), events.dead_letters.drop()))
    harness.send("events", [{"k": "hot", "ts": 1}] * 20_000).run_batch()
    assert harness.last.skew == {}
