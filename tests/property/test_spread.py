"""A key that is spread over key groups gives what it gives in its own, to the letter."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.operators.windows.triggers import schedule
from slackwater.testing import Harness
from tests.property.streams import ALIGNED, T0, Batch, Setup, batches, send, setups


def run(setup: Setup, stream: list[Batch]) -> Harness:
    harness = Harness(setup.pipeline()[0], now=T0)
    for batch in stream:
        if batch.restart:
            harness.restart()
        harness.now_ms += batch.later_ms
        send(harness, batch)
        harness.run_batch()
    harness.finish()
    return harness


@given(setups(ALIGNED | st.just(sw.global_window())), batches(), st.integers(2, 9))
def test_results_are_those_of_a_key_in_one_group(setup: Setup, stream: list[Batch], spread: int) -> None:
    assume(schedule(setup.trigger).early_event_time_ms is None)
    usual, spread_out = run(setup, stream), run(replace(setup, spread=spread), stream)
    for output in ("events.window", "events.window.late", "events.dead_letters"):
        found, wanted = spread_out.output(output), usual.output(output)
        assert_frame_equal(found, wanted, check_row_order=False)
    assert spread_out.pieces == usual.pieces


def test_rows_of_one_key_are_condensed_before_they_meet() -> None:
    rows = sw.stream("events", sw.testing.rows_source("k string, t long")).event_time("t")
    counts = rows.key_by("k", spread=8).window(sw.tumbling("1m")).aggregate(n=sw.count())
    ends = counts.to(sw.sinks.memory()), counts.late.drop(), rows.dead_letters.drop()
    harness = Harness(sw.Pipeline("spread", *ends, key_groups=4))
    for partition in range(100):
        harness.send("events", [{"k": "hot", "t": 1}], partition=str(partition))
    harness.run_batch()
    # One piece comes from each of the groups that condensed the hundred files.
    assert harness.pieces == 4
    harness.finish()
    assert harness.output(counts)["n"].to_list() == [100]
