"""Rows that cannot be used do not hold a watermark, and every row that a function drops or makes is counted."""

from __future__ import annotations

import warnings
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.plan.streams import Stream
from slackwater.spark.alerts import BarrenPartitionWarning, report_barren
from slackwater.testing import Harness
from slackwater.testing.harness import rows_source

SCHEMA = "k string, ts long, kind string"


def counted(stream: Stream, *, now: int = 0) -> Harness:
    """Return a harness that counts the rows of `stream` per second."""
    seconds = stream.key_by("k").window(sw.tumbling("1s"), name="seconds").aggregate(n=sw.count())
    return Harness(
        sw.Pipeline("p", seconds.to(sw.sinks.memory()), seconds.late.drop(), stream.dead_letters.drop()), now=now
    )


def row(ts: int | None, kind: str = "click") -> dict[str, Any]:
    """Return one row."""
    return {"k": "x", "ts": ts, "kind": kind}


@pytest.mark.parametrize(
    "useless",
    [row(0, "view"), row(None), row(86_400_000)],
    ids=["filtered before its time is taken", "without a time", "ahead of the clock"],
)
def test_partition_without_usable_rows_holds_the_watermark_for_idle_after_and_is_named_once(
    useless: dict[str, Any],
) -> None:
    stream = (
        sw.stream("s", rows_source(SCHEMA)).where("kind = 'click'").event_time("ts", idle_after="10s", max_ahead="1m")
    )
    harness = counted(stream)
    told: set[str] = set()
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        for second in range(13):
            harness.now_ms = 1_000 * second
            harness.send("s", [row(harness.now_ms)], partition="0").send("s", [useless], partition="1")
            harness.run_batch()
            report_barren(harness.plan, harness.clock, told)
            assert (harness.watermark["s"] == harness.now_ms) == (second >= 10)
    assert [notice.category for notice in notices] == [BarrenPartitionWarning]
    assert "[PARTITION_UNUSABLE]" in str(notices[0].message)
    assert "stream `s` had no row with an event time for 10s in partition `1`" in str(notices[0].message)
    assert harness.output("seconds").height == 11


def test_partition_that_brings_rows_again_and_loses_them_again_is_named_again() -> None:
    harness = counted(sw.stream("s", rows_source(SCHEMA)).event_time("ts", idle_after="10s"))
    told: set[str] = set()
    for now, sent, named in ((0, None, 0), (10, None, 1), (20, 20_000, 0), (30, None, 1), (40, None, 0)):
        harness.now_ms = 1_000 * now
        harness.send("s", [row(sent)]).run_batch()
        with warnings.catch_warnings(record=True) as notices:
            warnings.simplefilter("always")
            report_barren(harness.plan, harness.clock, told)
        assert len(notices) == named, now


def test_rows_that_a_map_leaves_out_or_makes_are_in_the_account() -> None:
    def clicks_twice(rows: pl.DataFrame) -> pl.DataFrame:
        clicks = rows.filter(pl.col("kind") == "click")
        return pl.concat([clicks, clicks])

    harness = counted(sw.stream("s", rows_source(SCHEMA)).event_time("ts").map(clicks_twice))
    harness.send("s", [row(1), row(2, "view"), row(3)]).run_batch()
    found = harness.last.streams["s"]
    assert (found.rows, found.filtered, found.added, found.dead) == (3, 1, 2, 0)


def test_map_that_keeps_every_row_filters_none() -> None:
    harness = counted(sw.stream("s", rows_source(SCHEMA)).event_time("ts").map(lambda rows: rows))
    harness.send("s", [row(1), row(2)]).run_batch()
    found = harness.last.streams["s"]
    assert (found.filtered, found.added) == (0, 0)


def test_rows_of_results_that_a_map_leaves_out_are_in_the_account_of_their_step() -> None:
    stream = sw.stream("s", rows_source(SCHEMA)).event_time("ts")
    seconds = stream.key_by("k").window(sw.tumbling("1s"), name="seconds").aggregate(n=sw.count())
    many = seconds.map(lambda rows: rows.filter(pl.col("n") > 1))
    pipeline = sw.Pipeline(
        "p",
        many.to(sw.sinks.memory()),
        seconds.late.drop(),
        seconds.dead_letters.drop(),
        stream.dead_letters.drop(),
    )
    harness = Harness(pipeline)
    harness.send("s", [row(1), row(1_001), row(1_002)]).finish()
    assert harness.last.counts["seconds"]["filtered"] == 1


def test_batch_under_the_final_watermark_reads_nothing() -> None:
    from slackwater.engine.next_clock import final_clock

    harness = counted(sw.stream("s", rows_source(SCHEMA)).event_time("ts", out_of_orderness="1h"))
    harness.send("s", [row(second * 1_000) for second in range(100)]).run_batch()
    harness.clock = final_clock(harness.clock)
    harness.send("s", [row(100_000)]).run_batch()
    assert harness.output("seconds")["n"].sum() == 100
    assert harness.last.streams["s"].rows == 0
    assert harness.last.counts["seconds"]["late"] == 0


def dead_letters_of(stream: Stream, *rows: dict[str, Any]) -> list[str]:
    """Return the messages of what cannot be used of some rows."""
    harness = Harness(sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop()), now=0)
    harness.send("s", list(rows)).run_batch()
    return harness.output("s.dead_letters")["message"].to_list()


def test_event_from_the_future_is_a_dead_letter_that_names_both_times() -> None:
    stream = sw.stream("s", rows_source(SCHEMA)).event_time("ts", max_ahead="10m")
    [message] = dead_letters_of(stream, row(600_000), row(600_001))
    at, now = "1970-01-01 00:10:00.001", "1970-01-01 00:00:00.000"
    assert message == f"event time {at} is more than max_ahead (10m) ahead of processing time {now}"


def test_dead_letter_has_the_first_line_of_what_polars_says() -> None:
    stream = sw.stream("s", rows_source(SCHEMA)).with_columns(n=pl.col("kind").cast(pl.Int64))
    [message] = dead_letters_of(stream, row(0))
    assert message.startswith("InvalidOperationError: conversion from `str` to `i64` failed")
    assert "\n" not in message
