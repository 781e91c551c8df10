"""Bad definitions of times, windows, triggers and aggregates."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

import slackwater
from tests.plan.bad_definition import DDL, Bad, built, purchases, records, sw, windowed


def two_times() -> Any:  # noqa: ANN401
    """Build a stream that branches before it takes its time."""
    bare = sw.stream("purchases", sw.testing.rows_source("a timestamp, b timestamp"))
    by_a, by_b = bare.event_time("a"), bare.event_time("b")
    return sw.Pipeline("p", by_a.to(sw.sinks.memory()), by_b.to(sw.sinks.memory()), bare.dead_letters.drop())


class Mean(slackwater.Accumulator):
    """A complete accumulator class, but for its `output`."""

    def create(self) -> Any:  # noqa: ANN401
        return (0.0, 0)

    def add(self, acc: Any, value: Any) -> Any:  # noqa: ANN401
        return (acc[0] + value, acc[1] + 1)

    def merge(self, a: Any, b: Any) -> Any:  # noqa: ANN401
        return (a[0] + b[0], a[1] + b[1])

    def result(self, acc: Any) -> Any:  # noqa: ANN401
        return acc[0] / acc[1]


class Half(slackwater.Accumulator):
    """An accumulator class that lacks half its methods."""

    output = pl.Float64

    def create(self) -> Any:  # noqa: ANN401
        return 0.0

    def result(self, acc: Any) -> Any:  # noqa: ANN401
        return acc


TIME = [
    Bad("a window of zero length", "DURATION_TOO_SHORT", "tumbling window `size` must be longer than zero; got 0s", lambda: sw.tumbling("0s")),
    Bad("a window of negative length", "DURATION_TOO_SHORT", "`size` must be longer than zero; got -1m", lambda: sw.tumbling("-1m")),
    Bad("a slide of zero", "DURATION_TOO_SHORT", "hopping window `every` must be longer than zero", lambda: sw.hopping("1m", every="0s")),
    Bad("a negative slide", "DURATION_TOO_SHORT", "hopping window `every` must be longer than zero", lambda: sw.hopping("1m", every="-1s")),
    Bad("a sliding window of zero", "DURATION_TOO_SHORT", "sliding window `size` must be longer than zero", lambda: sw.sliding("0s")),
    Bad("a session without a gap", "DURATION_TOO_SHORT", "session window `gap` must be longer than zero", lambda: sw.session("0s")),
    Bad("a session of no length", "DURATION_TOO_SHORT", "session window `max_length`", lambda: sw.session("1m", max_length="0s")),
    Bad("negative allowed lateness", "DURATION_TOO_SHORT", "`allowed_lateness` must be zero or longer; got -5m", lambda: windowed(allowed_lateness="-5m")),
    Bad("negative out-of-orderness", "DURATION_TOO_SHORT", "`out_of_orderness` must be zero or longer", lambda: records().event_time("t", out_of_orderness="-1s")),
    Bad("a negative guard", "DURATION_TOO_SHORT", "`max_ahead` must be zero or longer", lambda: records().event_time("t", max_ahead=timedelta(seconds=-1))),
    Bad("idle at once", "DURATION_TOO_SHORT", "`idle_after` must be longer than zero", lambda: records().event_time("t", idle_after="0s")),
    Bad("a trigger every zero seconds", "DURATION_TOO_SHORT", "trigger `every`", lambda: sw.every("0s")),
    Bad("a half-life of zero", "DURATION_TOO_SHORT", "half_life of ewma", lambda: sw.ewma("amount", half_life="0s")),
    Bad("a duration without a unit", "DURATION_UNREADABLE", "got '90'; try \"30s\"", lambda: sw.tumbling("90")),
    Bad("a duration in an unknown unit", "DURATION_UNREADABLE", "units (ms, s, m, h, d, w)", lambda: sw.tumbling("1 fortnight")),
    Bad("a duration of a month", "DURATION_UNREADABLE", "got '1mo'; for windows of months and years use sw.calendar(", lambda: sw.tumbling("1mo")),
    Bad("a duration of a year", "DURATION_UNREADABLE", "got '1y'; for windows of months and years use sw.calendar(", lambda: sw.tumbling("1y")),
    Bad("a duration that is a number", "DURATION_UNREADABLE", "got 60", lambda: sw.tumbling(60)),
    Bad("a duration of microseconds", "DURATION_TOO_FINE", "whole number of milliseconds", lambda: sw.tumbling(timedelta(microseconds=1500))),
    Bad("a window of a thousand years", "DURATION_TOO_LONG", "shorter than a hundred years", lambda: sw.tumbling("365000d")),
    Bad("an offset as long as the window", "WINDOW_OFFSET", "`offset` of a tumbling window must be smaller than its `size` (1m); got 1m", lambda: sw.tumbling("1m", offset="1m")),
    Bad("an offset longer than the slide", "WINDOW_OFFSET", "smaller than its `every` (1m); got 2m", lambda: sw.hopping("10m", every="1m", offset="2m")),
    Bad("a negative offset as long as the window", "WINDOW_OFFSET", "got -1m", lambda: sw.tumbling("1m", offset="-1m")),
    Bad("a cumulative window of uneven parts", "CUMULATIVE_UNEVEN", "multiple of `every`; got size 1h, every 7m", lambda: sw.cumulative("1h", every="7m")),
    Bad("a session shorter than its gap", "SESSION_MAX_LENGTH", "got 10m with gap 30m", lambda: sw.session("30m", max_length="10m")),
    Bad("a gap by row that is text", "SESSION_GAP_TYPE", 'got col("user_id") of type String', lambda: built(windowed(sw.session(pl.col("user_id"))).aggregate(n=sw.count()))),
    Bad("an unknown word for touching sessions", "SESSION_TOUCHING", '"merge" or "separate"', lambda: sw.session("30m", touching="join")),
    Bad("an event time of text", "EVENT_TIME_TYPE", "in `purchases.event_time`", lambda: built(sw.stream("purchases", sw.testing.rows_source("t string")).event_time("t"))),
    Bad("two event times in one stream", "EVENT_TIME_TWICE", "got a second time in `purchases`", lambda: built(purchases().event_time("placed_at"))),
    Bad("different event times in two branches", "EVENT_TIME_TWICE", "before the stream branches", two_times),
    Bad("a window on rows without a time", "EVENT_TIME_MISSING", "got step `purchases.window` on stream `purchases`", lambda: built(sw.stream("purchases", sw.testing.rows_source(DDL)).key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
]  # fmt: skip
WINDOWS = [
    Bad("an idle stream that does neither", "WHEN_ALL_IDLE", "got 'sleep'", lambda: records().event_time("placed_at", when_all_idle="sleep")),
    Bad("time that goes on though nothing is ever idle", "WHEN_ALL_IDLE_NEVER", 'add idle_after="1m"', lambda: records().event_time("placed_at", when_all_idle="advance")),
    Bad("semantics that are a number", "NOT_SEMANTICS", "got 3", lambda: windowed(semantics=3)),
    Bad("an empty step name", "BAD_NAME", "a step name must consist of letters, digits", lambda: windowed(name="")),
    Bad("windows without number", "WINDOW_OVERLAP", "got a hopping window that puts each event into 86,400,000", lambda: sw.hopping("1d", every="1ms")),
    Bad("cumulative windows without number", "WINDOW_OVERLAP", "at most 100,000 windows", lambda: sw.cumulative("365d", every="1s")),
    Bad("any of no trigger", "TRIGGER_ANY_OF", "got nothing; give two different ones", sw.any_of),
    Bad("a window longer than the world", "DURATION_TOO_LONG", "tumbling window `size`", lambda: sw.tumbling(timedelta.max)),
    Bad("quantiles that are none", "QUANTILES_EMPTY", "got None; try [0.5, 0.95]", lambda: sw.quantiles("amount", None)),
    Bad("a window that is a string", "NOT_A_WINDOW", "got '1m'; use sw.tumbling", lambda: windowed("1m")),
    Bad("an accumulation in capitals", "ACCUMULATION", "got 'ACCUMULATING' (did you mean `accumulating`?)", lambda: windowed(accumulation="ACCUMULATING")),
    Bad("a trigger that is a string", "NOT_A_TRIGGER", "got '10s'; use sw.after_watermark(...), after_count, every, every_event_time, any_of or never", lambda: windowed(trigger="10s")),
    Bad("an unknown accumulation", "ACCUMULATION", "got 'summing';", lambda: windowed(accumulation="summing")),
    Bad("a misspelt accumulation", "ACCUMULATION", "got 'acumulating' (did you mean `accumulating`?);", lambda: windowed(accumulation="acumulating")),
    Bad("a global window that never fires", "GLOBAL_NEEDS_TRIGGER", "add trigger=sw.after_count(100)", lambda: windowed(sw.global_window())),
    Bad("a session gap that is no whole number", "SESSION_GAP_TYPE", "of type Float64", lambda: built(windowed(sw.session(pl.col("amount"))).aggregate(n=sw.count()))),
    Bad("lateness of a window without an end", "GLOBAL_LATENESS", "no row is late for it", lambda: built(windowed(sw.global_window(), trigger=sw.after_count(3), allowed_lateness="1m").aggregate(n=sw.count()))),
    Bad("a trigger on a sliding window", "SLIDING_TRIGGER", "remove `trigger`", lambda: windowed(sw.sliding("1m"), trigger=sw.every("10s"))),
    Bad("a sliding window that discards", "SLIDING_DISCARDING", 'use "accumulating" or "retracting"', lambda: windowed(sw.sliding("1m"), accumulation="discarding")),
    Bad("a count of zero", "TRIGGER_COUNT", "got 0", lambda: sw.after_count(0)),
    Bad("any of one trigger", "TRIGGER_ANY_OF", "two or more", lambda: sw.any_of(sw.after_count(1))),
    Bad("any of two counts", "TRIGGER_ANY_OF", "each at most once", lambda: sw.any_of(sw.after_count(1), sw.after_count(2))),
    Bad("any of a count that ends the window", "TRIGGER_ANY_OF", "any_of", lambda: sw.any_of(sw.after_count(1, once=True), sw.every("1s"))),
    Bad("an early part that waits for the watermark", "TRIGGER_EARLY", "`early` takes after_count(n)", lambda: sw.after_watermark(early=sw.after_watermark())),
    Bad("an early part that ends the window", "TRIGGER_EARLY", "once=True", lambda: sw.after_watermark(early=sw.after_count(2, once=True))),
    Bad("a late part by processing time", "TRIGGER_LATE", "`late` takes after_count(n), never() or None", lambda: sw.after_watermark(late=sw.every("1s"))),
    Bad("nothing to aggregate", "AGGREGATE_EMPTY", "got none in step `purchases.window`", lambda: windowed().aggregate()),
    Bad("an aggregate that is a column name", "NOT_AN_AGGREGATE", "got 'amount' for `total`", lambda: windowed().aggregate(total="amount")),
    Bad("an aggregate with the key's name", "AGGREGATE_NAME_TAKEN", "got `user_id`", lambda: built(windowed().aggregate(user_id=sw.count()))),
    Bad("an aggregate with a result column's name", "AGGREGATE_NAME_TAKEN", "got `pane_index`", lambda: built(windowed().aggregate(pane_index=sw.count()))),
    Bad("a sum of text", "AGGREGATE_INPUT_TYPE", "sum(user_id) needs numbers; got String", lambda: built(windowed().aggregate(total=sw.sum("user_id")))),
    Bad("the top by something without an order", "AGGREGATE_INPUT_TYPE", "an orderable `by`", lambda: built(windowed().aggregate(best=sw.top(3, by="tags")))),
    Bad("a sum of a sum", "AGGREGATE_INPUT_NOT_A_ROW_VALUE", "leave the aggregation to the aggregate", lambda: built(windowed().aggregate(total=sw.sum(pl.col("amount").sum())))),
    Bad("the top zero", "TOP_N", "got 0", lambda: sw.top(0, by="amount")),
    Bad("a quantile of 95", "QUANTILE_RANGE", "got 99 in quantile(amount); 0.99 is the 99th percentile", lambda: sw.quantile("amount", 99)),
    Bad("no quantiles", "QUANTILES_EMPTY", "try [0.5, 0.95]", lambda: sw.quantiles("amount", [])),
    Bad("a quantile without error", "QUANTILE_ERROR", "0.01 means one percent", lambda: sw.quantile("amount", 0.5, relative_error=0)),
    Bad("degrees of freedom below zero", "AGGREGATE_DDOF", "got -1", lambda: sw.variance("amount", ddof=-1)),
    Bad("a sketch of one hash", "APPROX_DISTINCT_K", "got 1", lambda: sw.approx_distinct("user_id", k=1)),
    Bad("an accumulator that is an object", "ACCUMULATOR_CLASS", "pass `Mine` itself", lambda: sw.accumulator(Mean(), "amount")),
    Bad("an accumulator without a type", "ACCUMULATOR_OUTPUT", "Mean has `output` = nothing", lambda: sw.accumulator(Mean, "amount")),
    Bad("an accumulator that lacks methods", "ACCUMULATOR_METHODS", "Half lacks add, merge", lambda: sw.accumulator(Half, "amount")),
]  # fmt: skip
