"""Ages of rows and outputs, counts of rows ahead of the clock, and open state, in a scripted run."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import slackwater as sw
from slackwater.base.times import LAST_USABLE_MS
from slackwater.eventtime.ages import AgeSketch
from slackwater.testing import Harness

NOW = 1_767_225_600_000


def observed(*times_ms: int | None) -> AgeSketch:
    sketch = AgeSketch()
    sketch.observe(pl.Series(times_ms, dtype=pl.Int64), NOW)
    return sketch


def test_age_is_the_time_from_a_rows_own_to_the_batchs() -> None:
    ages = observed(NOW - 5_000, NOW - 100, NOW)
    assert (ages.count, ages.zeros, ages.max_ms, ages.quantile(0.5)) == (3, 1, 5_000, 100)


def test_row_ahead_of_the_clock_has_age_0() -> None:
    ages = observed(NOW + 60_000, NOW - 10)
    assert (ages.zeros, ages.max_ms) == (1, 10)


def test_rows_of_one_time_are_counted_at_once() -> None:
    ages = observed(*[NOW - 70] * 9)
    assert ages.histogram(64) == [(70, 9)]


def test_rows_without_a_time_and_at_the_end_of_time_are_left_out() -> None:
    ages = observed(None, LAST_USABLE_MS - 1, NOW - 70)
    assert ages.histogram(64) == [(70, 1)]
    assert observed(None).count == 0


@pytest.mark.parametrize("rows", [8_192, 100_000])
def test_of_many_rows_the_number_and_the_largest_are_exact_and_shares_within_two_percent(rows: int) -> None:
    ages_ms = np.random.default_rng(7).exponential(60_000, rows).astype(np.int64)
    sketch = AgeSketch()
    sketch.observe(pl.Series(NOW - ages_ms), NOW)
    assert (sketch.count, sketch.max_ms) == (rows, int(ages_ms.max()))
    for q in (0.5, 0.95, 0.99):
        assert np.mean(ages_ms <= sketch.quantile(q)) == pytest.approx(q, abs=0.02)


def test_histogram_has_few_bars_and_all_values() -> None:
    sketch = observed(*(NOW - int(age) for age in np.geomspace(1, 10**9, 5_000)))
    bars = sketch.histogram(64)
    assert 16 <= len(bars) <= 64
    assert sum(count for _, count in bars) == 5_000
    assert bars == sorted(bars)


def shop() -> Harness:
    orders = sw.stream("orders", sw.testing.rows_source("user string, t long")).event_time("t", max_ahead="1h")
    per_minute = orders.key_by("user").window(sw.tumbling("1m")).aggregate(n=sw.count())
    pipeline = sw.Pipeline(
        "shop",
        orders.to(sw.sinks.memory()),
        per_minute.to(sw.sinks.memory()),
        per_minute.late.to(sw.sinks.memory()),
        orders.dead_letters.to(sw.sinks.memory()),
    )
    return Harness(pipeline, now=NOW)


def sent(harness: Harness, *ages_s: int) -> Harness:
    return harness.send("orders", [{"user": "ada", "t": NOW - 1_000 * age} for age in ages_s])


def kinds(harness: Harness) -> dict[str, str]:
    return {output.kind: output.name for output in harness.plan.outputs}


def test_stream_counts_the_ages_of_rows_that_got_a_time_and_those_ahead() -> None:
    harness = sent(shop(), 30, 20, -5, -7_200)
    harness.run_batch()
    stream = harness.last.streams["orders"]
    assert stream.ages is not None
    assert (stream.ages.count, stream.ages.zeros, stream.ages.max_ms) == (3, 1, 30_000)
    assert stream.ages.quantile(0.5) == pytest.approx(20_000, rel=0.01)
    assert (stream.ahead, stream.dead) == (1, 1)


def test_output_of_rows_counts_both_ages_and_results_that_of_their_window() -> None:
    harness = sent(shop(), 90)
    harness.run_batch()
    names = kinds(harness)
    ages = harness.last.ages[names["rows"]]
    assert {since: sketch.max_ms for since, sketch in ages.items()} == {"event": 90_000, "ingestion": 0}
    assert set(harness.last.ages) == {names["rows"]}
    harness.advance_watermark(NOW)  # the window ends 60 s before now
    results = harness.last.ages[names["results"]]
    assert {since: sketch.histogram(8) for since, sketch in results.items()} == {"event": [(60_001, 1)]}


def test_late_rows_have_ages_and_dead_letters_have_none() -> None:
    harness = shop()
    harness.advance_watermark(NOW)
    sent(harness, 150, -7_200).run_batch()
    names = kinds(harness)
    assert harness.last.ages[names["late"]]["event"].max_ms == 150_000
    assert names["dead_letters"] not in harness.last.ages


def test_state_is_open_until_the_watermark_has_passed_it() -> None:
    harness = sent(shop(), 150, 90, 10)
    harness.run_batch()
    [held] = harness.last.state.values()
    assert (held["rows"], held["open"]) == (3, 3)
    harness.advance_watermark(NOW - 60_000)
    [held] = harness.last.state.values()
    assert (held["rows"], held["open"]) == (1, 1)


def test_stream_of_processing_time_has_no_ages() -> None:
    rows = sw.stream("rows", sw.testing.rows_source("t long")).processing_time()
    harness = Harness(sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop()), now=NOW)
    harness.send("rows", [{"t": 1}]).run_batch()
    assert harness.last.streams["rows"].ages is None
