"""Pieces of state pile up only so far, and compacting them changes no answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.operators.state.pieces import COMPACT_AT
from slackwater.windows import Window
from tests.operators.windows.windowed import Windowed, panes

TINY_BATCHES = 60


@pytest.mark.parametrize(
    "window",
    [sw.tumbling("1s"), sw.hopping("1s", every="250ms"), sw.cumulative("1s", every="250ms"), sw.sliding("100ms")],
    ids=str,
)
def test_a_long_window_of_many_tiny_batches_holds_few_pieces_and_gives_the_same(window: Window) -> None:
    rows = [("a", number * 7 % 900, number) for number in range(TINY_BATCHES)]
    tiny, whole = Windowed(window), Windowed(window)
    most = 0
    for row in rows:
        tiny.add(row)
        most = max(most, tiny.harness.pieces)
    # Two tiers at most here: less than one full tier of each, and what is being filled.
    assert most <= 2 * (COMPACT_AT + 3)
    whole.add(*rows)
    assert panes(tiny.finish()) == panes(whole.finish())
    assert tiny.harness.pieces == 0


def test_compaction_is_staggered_over_the_key_groups() -> None:
    step = Windowed(sw.tumbling("1s"), key_groups=4)
    for number in range(60):
        step.add(*((key, number, number) for key in "abcdefgh"))
    assert step.harness.pieces <= 4 * 2 * (COMPACT_AT + 3)
    assert sorted(len(row["ids"]) for row in step.advance(1000)) == [60] * 8


def test_a_quiet_batch_reads_the_index_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Windowed(sw.tumbling("1s"))
    step.add(("a", 1, 0))
    reads: list[Any] = []
    monkeypatch.setattr("slackwater.operators.state.pieces.unpack", lambda *args: reads.append(args))
    assert step.advance(500) == []
    assert reads == []


def test_windows_that_showed_all_are_dropped_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Windowed(sw.tumbling("10ms"), allowed_lateness="20ms")
    step.add(("a", 1, 0))
    assert panes(step.advance(10)) == [(0, 10, [0], "on_time")]
    reads: list[Any] = []
    monkeypatch.setattr("slackwater.operators.state.pieces.unpack", lambda *args: reads.append(args))
    assert step.advance(30) == []
    assert reads == []
    assert step.harness.pieces == 0


@given(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=60), st.sampled_from([0, 30]))
def test_watermarks_between_tiny_batches_change_no_on_time_answer(batches: list[list[int]], behind: int) -> None:
    tiny, whole = (Windowed(sw.hopping("20ms", every="5ms"), allowed_lateness="1s") for _ in range(2))
    rows, at = [], 0
    for number, batch in enumerate(batches):
        # Rows a little ahead of the watermark, so that none is late.
        fresh = [("a", at + ts, number * 100 + place) for place, ts in enumerate(batch)]
        tiny.add(*fresh)
        rows += fresh
        at += 3
        tiny.advance(at - behind)
    tiny.finish()
    whole.add(*rows)
    whole.finish()

    def last(step: Windowed) -> dict[Any, Any]:
        shown = step.harness.output(step.results).to_dicts()
        return {(row["window_start"], row["window_end"]): sorted(row["ids"]) for row in shown}

    assert last(tiny) == last(whole)
