"""Sliding windows: for every event, the last `size` of its key, corrected when a late event falls inside."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from tests.operators.windows.windowed import Windowed, panes

SIZE = 10


def test_each_event_sees_the_size_that_ends_with_it() -> None:
    #   0 ...... 9  10
    #   |--------|          10 no longer sees 0
    step = Windowed(sw.sliding("10ms"))
    step.add(("a", 0, 0), ("a", 9, 1), ("a", 10, 2))
    assert panes(step.advance(11)) == [(-9, 1, [0], "on_time"), (0, 10, [0, 1], "on_time"), (1, 11, [1, 2], "on_time")]


def test_events_of_one_instant_share_a_result() -> None:
    step = Windowed(sw.sliding("10ms"))
    step.add(("a", 5, 0), ("a", 5, 1), ("b", 5, 2))
    assert panes(step.advance(6)) == [(-4, 6, [0, 1], "on_time"), (-4, 6, [2], "on_time")]


def test_a_late_event_corrects_every_window_that_it_falls_into() -> None:
    step = Windowed(sw.sliding("10ms"), allowed_lateness="100ms")
    step.add(("a", 0, 0), ("a", 8, 1), ("a", 20, 2))
    step.advance(30)
    assert panes(step.add(("a", 4, 3))) == [(-5, 5, [0, 3], "late"), (-1, 9, [0, 3, 1], "late")]


def test_a_correction_withdraws_what_was_shown() -> None:
    step = Windowed(sw.sliding("10ms"), allowed_lateness="100ms", accumulation="retracting")
    step.add(("a", 8, 1))
    step.advance(30)
    assert panes(step.add(("a", 4, 3))) == [(-5, 5, [3], "late"), (-1, 9, [1], "-late"), (-1, 9, [3, 1], "late")]


def test_a_far_jump_of_the_watermark_shows_every_event() -> None:
    step = Windowed(sw.sliding("10ms"))
    step.add(("a", 0, 0), ("a", 5, 1))
    assert panes(step.advance(10_000)) == [(-9, 1, [0], "on_time"), (-4, 6, [0, 1], "on_time")]
    assert step.harness.pieces == 0


def test_an_event_sees_what_fired_before_a_far_jump() -> None:
    step = Windowed(sw.sliding("10ms"))
    step.add(("a", 0, 0), ("a", 5, 1))
    assert panes(step.advance(3)) == [(-9, 1, [0], "on_time")]
    assert panes(step.advance(10_000)) == [(-4, 6, [0, 1], "on_time")]


def test_an_instant_is_forgotten_when_none_can_look_back_on_it() -> None:
    step = Windowed(sw.sliding("10ms"), allowed_lateness="5ms")
    step.add(("a", 0, 0))
    step.advance(15)
    assert step.harness.pieces == 1
    step.advance(16)
    assert step.harness.pieces == 0


STREAMS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-20, 60)), max_size=5), st.integers(0, 15)
    ),
    max_size=8,
)


@given(STREAMS, st.sampled_from([0, 12, 100]), st.sampled_from(["accumulating", "retracting"]))
def test_what_stands_is_what_each_event_sees(
    stream: list[tuple[list[tuple[str | None, int]], int]], lateness: int, accumulation: str
) -> None:
    step = Windowed(sw.sliding(f"{SIZE}ms"), allowed_lateness=f"{lateness}ms", accumulation=accumulation)
    stands: dict[tuple[Any, ...], list[int]] = {}
    accepted: list[tuple[str | None, int, int]] = []
    late, number, watermark = [], 0, -25
    for rows, further in stream:
        numbered = [(key, ts, number + place) for place, (key, ts) in enumerate(rows)]
        number += len(rows)
        accepted += [row for row in numbered if row[1] + 1 + lateness > watermark]
        late += [row[2] for row in numbered if row[1] + 1 + lateness <= watermark]
        watermark += further
        for row in [*step.add(*numbered), *step.advance(watermark)]:
            at = (row["key"], row["end"])
            if row["is_retraction"]:
                assert stands.pop(at) == row["ids"]
            else:
                assert accumulation == "accumulating" or at not in stands
                stands[at] = row["ids"]
    for row in step.finish():
        assert not row["is_retraction"], "the end of the input corrects nothing"
        stands[row["key"], row["end"]] = row["ids"]

    def seen(at: tuple[str | None, int, int]) -> list[int]:
        inside = [row for row in accepted if row[0] == at[0] and -SIZE < row[1] - at[1] <= 0]
        return [row[2] for row in sorted(inside, key=lambda row: row[1:])]

    assert stands == {(at[0], at[1] + 1): seen(at) for at in accepted}
    assert sorted(step.late_ids()) == sorted(late)
