"""The last result of each window, as an output of its own: once, whole, when it can no longer change."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.operators.windows.spec import Accumulation
from slackwater.operators.windows.triggers import Trigger
from slackwater.plan.streams import Stream
from slackwater.testing import Harness, rows_source
from slackwater.windows import Window

LATENESS_MS = 20
WINDOWS: dict[str, Window] = {
    "tumbling": sw.tumbling("10ms"),
    "hopping": sw.hopping("20ms", every="10ms"),
    "session": sw.session("7ms"),
    "cut session": sw.session("7ms", max_length="15ms"),
}
TRIGGERS: dict[str, Trigger] = {
    "lazy": sw.after_watermark(),
    "early": sw.after_watermark(early=sw.after_count(1)),
    "late pairs": sw.after_watermark(late=sw.after_count(2)),
    "counts": sw.after_count(3),
    "never": sw.never(),
}


class Finals:
    """One windowed step with its final results, and an aggregate over those."""

    def __init__(
        self,
        window: Window,
        *,
        lateness_ms: int = LATENESS_MS,
        key_groups: int = 1,
        has_final: bool = True,
        **options: Any,  # noqa: ANN401  as `window` takes them
    ) -> None:
        events = sw.stream("events", rows_source("key string, ts long, id long"))
        events = events.event_time("ts", out_of_orderness="3650d")
        windowed = events.key_by("key").window(window, allowed_lateness=f"{lateness_ms}ms", **options)
        self.panes = windowed.aggregate(ids=sw.collect_list("id"), n=sw.count())
        self.final: Stream = self.panes.final
        self.chained = (
            self.final.key_by("key")
            .window(sw.tumbling("100ms"), name="chained")
            .aggregate(n=sw.sum("n"), ids=sw.collect_list("ids"))
        )
        of_final = (self.final, self.chained, self.chained.late) if has_final else ()
        self.pipeline = sw.Pipeline(
            "final",
            *(each.to(sw.sinks.memory()) for each in (self.panes, self.panes.late, *of_final)),
            events.dead_letters.drop(),
            key_groups=key_groups,
        )
        self.harness = Harness(self.pipeline)

    def add(self, *rows: tuple[str, int, int]) -> None:
        self.harness.send("events", [dict(zip(("key", "ts", "id"), row, strict=True)) for row in rows])
        self.harness.run_batch()

    def advance(self, watermark_ms: int) -> list[tuple[str, int, int, list[int]]]:
        """Move the watermark; return the windows that became final."""
        return _rows(self.harness.advance_watermark(watermark_ms)[self.final.name].iter_rows(named=True))

    def windows(self) -> list[tuple[str, int, int, list[int]]]:
        return _rows(self.harness.output(self.final).iter_rows(named=True))


def _rows(rows: Any) -> list[tuple[str, int, int, list[int]]]:  # noqa: ANN401  rows of a frame
    return sorted((row["key"], _ms(row["window_start"]), _ms(row["window_end"]), sorted(row["ids"])) for row in rows)


def _ms(moment: datetime) -> int:
    return round((moment - EPOCH).total_seconds() * 1000)


def test_a_window_is_final_when_the_watermark_is_past_its_allowed_lateness() -> None:
    #   [0, 10) is complete at 10, corrected by row 2, and final at 30
    step = Finals(sw.tumbling("10ms"))
    step.add(("a", 5, 1))
    assert step.advance(12) == []
    step.add(("a", 6, 2))
    assert step.advance(29) == []
    assert step.advance(30) == [("a", 0, 10, [1, 2])]
    step.harness.finish()
    assert step.windows() == [("a", 0, 10, [1, 2])], "it comes once"


def test_a_final_result_has_no_pane_and_the_last_instant_of_its_window_as_event_time() -> None:
    step = Finals(sw.tumbling("10ms"))
    step.add(("a", 5, 1))
    step.harness.finish()
    final = step.harness.output(step.final)
    assert final.columns == ["key", "window_start", "window_end", "ids", "n", "event_time"]
    assert _ms(final["event_time"].item()) == 9


@pytest.mark.parametrize("accumulation", ["accumulating", "retracting"])
def test_a_chained_aggregate_counts_a_corrected_window_once(accumulation: Accumulation) -> None:
    step = Finals(sw.tumbling("10ms"), accumulation=accumulation, trigger=sw.after_watermark(early=sw.after_count(1)))
    step.add(("a", 5, 1), ("a", 17, 2))
    step.advance(12)
    step.add(("a", 6, 3))
    step.harness.finish()
    assert step.harness.output(step.panes).height > 2, "the minute was shown more than once"
    assert step.harness.output(step.chained)["n"].to_list() == [3]


def test_final_results_alone_are_enough() -> None:
    events = sw.stream("events", rows_source("key string, ts long")).event_time("ts")
    windowed = events.key_by("key").window(sw.tumbling("10ms"), allowed_lateness="5ms").aggregate(n=sw.count())
    outputs = (windowed.final.to(sw.sinks.memory()), windowed.late.drop(), events.dead_letters.drop())
    outcome = sw.testing.run(sw.Pipeline("final", *outputs), {"events": [{"key": "a", "ts": 3}]})
    assert outcome[windowed.final]["n"].to_list() == [1]


def test_sessions_that_merge_are_final_as_one() -> None:
    step = Finals(sw.session("7ms"), accumulation="retracting")
    step.add(("a", 0, 1), ("a", 12, 2))
    step.advance(20)
    step.add(("a", 6, 3))
    step.harness.finish()
    assert step.windows() == [("a", 0, 19, [1, 2, 3])]


def test_windows_that_were_shown_before_the_output_was_added_become_final_too() -> None:
    before, after = Finals(sw.tumbling("10ms"), has_final=False), Finals(sw.tumbling("10ms"))
    before.add(("a", 5, 1), ("b", 15, 2))
    before.harness.advance_watermark(22)
    assert before.harness.output(before.panes).height == 2
    before.harness.pipeline = after.pipeline
    after.harness.engine = before.harness.restart().engine
    after.harness.clock = before.harness.clock
    after.harness.finish()
    assert after.windows() == [("a", 0, 10, [1]), ("b", 10, 20, [2])]


@pytest.mark.parametrize(
    "window, options, reason",
    [
        (sw.tumbling("10ms"), {"accumulation": "discarding"}, 'accumulation="discarding"'),
        (sw.global_window(), {"trigger": sw.after_count(1), "lateness_ms": 0}, "without an end"),
        (sw.sliding("10ms"), {}, "share rows"),
        (sw.tumbling("10ms"), {"trigger": sw.after_watermark(late=None)}, "ignores rows"),
    ],
)
def test_a_step_without_whole_results_is_refused(window: Window, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(sw.DefinitionError, match="FINAL_UNAVAILABLE") as refusal:
        Finals(window, **options)
    assert reason in str(refusal.value)


def test_a_count_window_has_no_final_output() -> None:
    events = sw.stream("events", rows_source("key string, ts long")).event_time("ts")
    counted = events.key_by("key").window(sw.count_window(3)).aggregate(n=sw.count())
    outputs = (counted.to(sw.sinks.memory()), counted.final.to(sw.sinks.memory()), events.dead_letters.drop())
    with pytest.raises(sw.DefinitionError, match="SIDE_UNKNOWN"):
        sw.Pipeline("counted", *outputs)


events = st.lists(
    st.one_of(st.tuples(st.sampled_from("ab"), st.integers(0, 120)), st.integers(1, 40), st.just("restart")),
    max_size=25,
)
"""Rows (key, time), moves of the watermark, and restarts from the stored state."""


@given(
    events,
    st.sampled_from(sorted(WINDOWS)),
    st.sampled_from(sorted(TRIGGERS)),
    st.sampled_from(["accumulating", "retracting"]),
    st.sampled_from([1, 4]),
)
def test_final_results_hold_every_row_that_was_not_late_once_in_each_of_its_windows(
    moves: list[Any], window: str, trigger: str, accumulation: Accumulation, key_groups: int
) -> None:
    step = Finals(WINDOWS[window], trigger=TRIGGERS[trigger], accumulation=accumulation, key_groups=key_groups)
    watermark, times = 0, {}
    for number, move in enumerate(moves):
        if move == "restart":
            step.harness.restart()
        elif isinstance(move, int):
            watermark += move
            step.advance(watermark)
        else:
            key, ts = move
            times[number] = (key, ts)
            step.add((key, ts, number))
    step.harness.finish()
    late = {*step.harness.output(step.panes.late)["id"].to_list()}
    taken: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, (key, ts) in times.items():
        if number not in late:
            taken[key].append((ts, number))
    found = step.windows()
    assert len({(key, start, end) for key, start, end, _ in found}) == len(found), "a window came twice"
    if window == "hopping":
        # A row that is late for one of its windows is missing there, and in no other one.
        seen = {number for *_, ids in found for number in ids}
        assert seen == {number for rows in taken.values() for _, number in rows}
    else:
        assert sorted(number for *_, ids in found for number in ids) == sorted(
            number for rows in taken.values() for _, number in rows
        )
    for key, start, end, ids in found:
        assert all(times[number][0] == key and start <= times[number][1] < end for number in ids)
    total = sum(len(ids) for *_, ids in found)
    assert step.harness.output(step.chained.late).height == 0
    assert sum(step.harness.output(step.chained)["n"].to_list()) == total
    assert step.harness.pieces == 0
