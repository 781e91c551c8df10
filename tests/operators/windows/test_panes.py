"""When panes by the clocks are shown: their rhythm, what starts it, and what ends it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.windows.panes import MOST_TICKS
from slackwater.plan.streams import Ended, Stream
from slackwater.testing import rows_source, run
from tests.operators.windows.windowed import Row, Windowed, panes


def test_the_first_row_to_arrive_starts_the_event_time_panes() -> None:
    #   rows 5, then 1; panes every 3: the first multiple after 5 is 6, and 3 is never a pane
    step = Windowed(sw.tumbling("100ms"), trigger=sw.every_event_time("3ms"))
    step.add(("a", 5, 0))
    step.add(("a", 1, 1))
    assert step.advance(4) == []
    assert panes(step.advance(7)) == [(0, 100, [1, 0], "early")]


def test_event_time_panes_wait_for_the_watermark_to_move() -> None:
    step = Windowed(sw.tumbling("100ms"), trigger=sw.every_event_time("10ms"))
    step.advance(25)
    step.add(("a", 3, 0))
    assert step.add(("b", 30, 1)) == []
    assert panes(step.advance(26)) == [(0, 100, [0], "early")] * 2


def test_event_time_panes_come_even_if_nothing_is_new() -> None:
    step = Windowed(sw.tumbling("100ms"), trigger=sw.every_event_time("10ms"))
    step.add(("a", 3, 0))
    assert panes(step.advance(31)) == [(0, 100, [0], "early")] * 3


@pytest.mark.parametrize("accumulation", ["discarding", "retracting"])
def test_event_time_panes_with_nothing_to_say_are_left_out(accumulation: str) -> None:
    step = Windowed(sw.tumbling("100ms"), trigger=sw.every_event_time("10ms"), accumulation=accumulation)
    step.add(("a", 3, 0))
    assert panes(step.advance(31)) == [(0, 100, [0], "early")]


def test_the_end_of_time_reaches_a_global_window_behind_steps_with_lateness() -> None:
    events = sw.stream("events", rows_source("key string, ts long")).event_time("ts")
    ended: list[Ended] = [events.dead_letters.drop()]
    last: Stream = events
    for number in (1, 2):
        windowed = last.key_by("key").window(
            sw.tumbling(f"{number}s"), allowed_lateness="5s", accumulation="discarding", name=f"step-{number}"
        )
        last = windowed.aggregate(n=sw.count())
        ended.append(last.late.drop())
    for name, trigger in (("count", sw.after_count(100)), ("ticks", sw.every_event_time("1m"))):
        everything = last.key_by("key").window(sw.global_window(), trigger=trigger, name=name).aggregate(n=sw.sum("n"))
        ended += [everything.to(sw.sinks.memory()), everything.late.drop()]
    harness = run(
        sw.Pipeline("chain", *ended), {"events": [{"key": "a", "ts": 100}, {"key": "a", "ts": 2_500}]}
    ).harness
    for name in ("count", "ticks"):
        assert harness.output(name)["n"].to_list() == [2]
    assert harness.pieces == 0


def test_a_global_window_stops_ticking_at_the_end_of_time() -> None:
    step = Windowed(sw.global_window(), trigger=sw.every_event_time("10ms"))
    step.add(("a", 3, 0))
    assert panes(step.finish()) == [(None, None, [0], "on_time")]


def test_panes_by_processing_time_keep_the_rhythm_of_the_first_row() -> None:
    step = Windowed(sw.tumbling("1s"), trigger=sw.after_watermark(early=sw.every("10ms")))
    step.wait("4ms")
    step.add(("a", 1, 0))
    assert step.wait("9ms") == []
    assert panes(step.wait("1ms")) == [(0, 1000, [0], "early")]
    assert step.wait("25ms") == [], "nothing is new"
    step.add(("a", 2, 1))
    assert step.wait("4ms") == []
    assert panes(step.wait("1ms")) == [(0, 1000, [0, 1], "early")]


def test_no_pane_by_processing_time_comes_after_the_on_time_pane() -> None:
    trigger = sw.after_watermark(early=sw.every("10ms"), late=sw.never())
    step = Windowed(sw.tumbling("100ms"), trigger=trigger, allowed_lateness="1s")
    step.add(("a", 1, 0))
    step.advance(100)
    step.add(("a", 2, 1))
    assert step.wait("1m") == []
    assert panes(step.advance(1100)) == [(0, 100, [0, 1], "late")]


@pytest.mark.parametrize("rows_between", [(), (("a", 2, 1),)], ids=["nothing new", "a late row that waits"])
def test_a_session_that_grows_after_its_on_time_pane_keeps_the_rhythm_of_its_first_row(
    rows_between: tuple[Row, ...],
) -> None:
    #   first row at 0: due at 10, 20 (both after the on-time pane), 30
    trigger = sw.after_watermark(early=sw.every("10ms"), late=sw.never())
    step = Windowed(sw.session("10ms"), trigger=trigger, allowed_lateness="1s", accumulation="discarding")
    step.add(("a", 3, 0))
    assert panes(step.advance(15)) == [(3, 13, [0], "on_time")]
    step.add(*rows_between)
    assert step.wait("25ms") == []
    assert step.add(("a", 12, 2)) == [], "it was due while it could not fire"
    assert step.wait("4ms") == []
    (shown,) = panes(step.wait("1ms"))
    assert shown[1:] == (22, [*(row[2] for row in rows_between), 2], "early")


def test_without_an_on_time_pane_processing_time_shows_late_rows_too() -> None:
    step = Windowed(sw.tumbling("100ms"), trigger=sw.every("10ms"), allowed_lateness="1s")
    step.add(("a", 1, 0))
    assert step.advance(100) == []
    assert panes(step.wait("10ms")) == [(0, 100, [0], "late")]
    step.add(("a", 2, 1))
    assert panes(step.wait("10ms")) == [(0, 100, [0, 1], "late")]


def test_a_window_with_nothing_new_is_not_read_when_its_pane_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Windowed(sw.tumbling("1s"), trigger=sw.after_watermark(early=sw.every("10ms")))
    step.add(("a", 1, 0))
    step.wait("10ms")
    reads: list[Any] = []
    monkeypatch.setattr("slackwater.operators.state.pieces.unpack", lambda *args: reads.append(args))
    assert step.wait("10ms") == []
    assert reads == []


def test_rows_after_the_last_pane_are_ignored_and_counted() -> None:
    step = Windowed(sw.tumbling("100ms"), trigger=sw.after_watermark(late=None), allowed_lateness="1s")
    step.add(("a", 1, 0))
    step.advance(100)
    assert step.add(("a", 2, 1)) == []
    assert step.harness.last.counts["events.window"]["ignored"] == 1
    assert step.advance(1100) == []
    assert step.late_ids() == []


@pytest.mark.parametrize("accumulation", ["accumulating", "retracting", "discarding"])
@pytest.mark.parametrize("repeat_unchanged", [True, False])
def test_the_watermark_ends_a_window_without_late_panes_though_nothing_was_new(
    accumulation: str, *, repeat_unchanged: bool
) -> None:
    trigger = sw.after_watermark(early=sw.after_count(1), late=None, repeat_unchanged=repeat_unchanged)
    step = Windowed(sw.tumbling("10ms"), trigger=trigger, accumulation=accumulation, allowed_lateness="50ms")
    step.add(("a", 1, 1))
    step.advance(12)
    assert step.add(("a", 2, 2)) == []
    assert step.harness.last.counts["events.window"]["ignored"] == 1
    assert step.finish() == []


def test_an_ignored_row_is_not_on_time_as_well() -> None:
    step = Windowed(sw.tumbling("100ms"), trigger=sw.after_count(1, once=True))
    step.add(("a", 1, 0))
    step.add(("a", 2, 1), ("b", 3, 2))
    counts = step.harness.last.counts["events.window"]
    assert (counts["on_time"], counts["ignored"]) == (1, 1)


def test_a_row_is_ignored_only_if_all_its_windows_are_finished() -> None:
    #  0        10        20        30
    #  [---- done ---------)
    #            [-----------------)
    step = Windowed(sw.hopping("20ms", every="10ms"), trigger=sw.after_count(1, once=True))
    step.add(("a", 5, 0))
    step.add(("a", 15, 1))
    counts = step.harness.last.counts["events.window"]
    assert (counts["on_time"], counts["ignored"], counts["partly_ignored"]) == (1, 0, 1)
    step.add(("a", 15, 2))
    assert step.harness.last.counts["events.window"]["ignored"] == 1


def test_rows_of_a_session_that_becomes_part_of_a_finished_one_are_on_time_and_never_shown() -> None:
    step = Windowed(sw.session("10ms"), trigger=sw.after_count(2, once=True))
    step.add(("a", 1, 0), ("a", 2, 1), ("a", 22, 2))
    assert step.harness.last.counts["events.window"]["on_time"] == 3
    step.add(("a", 12, 3))
    counts = step.harness.last.counts["events.window"]
    assert (counts["on_time"], counts["ignored"], counts["unshown"]) == (0, 1, 1)


def test_a_leap_of_the_watermark_shows_a_bounded_number_of_event_time_panes() -> None:
    step = Windowed(sw.tumbling("3650d"), trigger=sw.every_event_time("1ms"))
    step.add(("a", 1, 1))
    shown = step.advance(86_400_000)
    assert len(shown) == MOST_TICKS
    assert len(step.advance(86_400_002)) == 2, "the ticks go on where the watermark is"


def test_a_retraction_repeats_the_row_it_withdraws_but_for_the_pane_that_does_it() -> None:
    step = Windowed(sw.tumbling("10ms"), accumulation="retracting", allowed_lateness="50ms")
    step.add(("a", 1, 1))
    [first] = step.advance(12)
    again, _ = step.add(("a", 2, 2))
    new = {"pane", "watermark", "is_retraction"}
    assert {name: value for name, value in again.items() if name not in new} == {
        name: value for name, value in first.items() if name not in new
    }
    assert (again["pane"], again["is_retraction"]) == ("late", True)


def test_rows_that_no_trigger_has_shown_are_shown_when_the_window_is_forgotten() -> None:
    step = Windowed(sw.tumbling("100ms"), trigger=sw.after_count(2), accumulation="discarding")
    assert panes(step.add(("a", 1, 0), ("a", 2, 1))) == [(0, 100, [0, 1], "early")]
    step.add(("a", 3, 2))
    assert panes(step.advance(100)) == [(0, 100, [2], "late")]


def test_rows_that_no_trigger_has_shown_are_counted_where_they_are_discarded() -> None:
    keeps = sw.Semantics(on_close="discard")
    step = Windowed(sw.tumbling("100ms"), trigger=sw.after_count(2), semantics=keeps)
    step.add(("a", 3, 2))
    assert step.advance(100) == []
    assert step.harness.last.counts["events.window"]["unshown"] == 1


def test_rows_of_two_chunks_meet_though_one_of_them_has_a_single_window_left() -> None:
    rows = sw.stream("rows", sw.testing.rows_source("k string, ts long")).event_time("ts")
    counted = (
        rows.key_by("k")
        .window(sw.hopping("20ms", every="10ms"), trigger=sw.every("5ms"), allowed_lateness="10ms")
        .aggregate(n=sw.count())
    )
    pipeline = sw.Pipeline("p", counted.to(sw.sinks.memory()), counted.late.drop(), rows.dead_letters.drop())
    harness = sw.testing.Harness(pipeline)
    harness.advance_watermark(25)
    #   at 12: [0, 20) is behind for good at 30, [10, 30) is not; at 40 both windows are open
    harness.send("rows", [{"k": "a", "ts": 5}, {"k": "a", "ts": 12}])
    harness.advance_watermark(35)
    harness.send("rows", [{"k": "a", "ts": 22}], partition="0")
    harness.send("rows", [{"k": "a", "ts": 13}], partition="1")
    harness.send("rows", [{"k": "a", "ts": 44}], partition="2")
    harness.run_batch()
    harness.finish()
    shown = harness.output(counted)
    last = shown.sort("pane_index").group_by("window_start", maintain_order=True).last().sort("window_start")
    assert last.select(pl.col("window_start").dt.epoch("ms"), "n").rows() == [(10, 3), (20, 1), (30, 1), (40, 1)]
