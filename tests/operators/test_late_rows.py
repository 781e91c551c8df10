"""The late output: the original row, how late it was, and the windows it missed."""

from __future__ import annotations

from datetime import datetime

import pytest

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.windows import Window
from tests.operators.windows.windowed import Windowed


def ms(moment: datetime) -> int:
    return round((moment - EPOCH).total_seconds() * 1000)


@pytest.mark.parametrize(
    "window,missed",
    [
        (sw.tumbling("10ms"), [(0, 10)]),
        (sw.hopping("10ms", every="4ms"), [(-4, 6), (0, 10), (4, 14)]),
        (sw.cumulative("12ms", every="4ms"), [(0, 8), (0, 12)]),
        (sw.session("10ms"), [(5, 15)]),
        (sw.sliding("10ms"), [(-4, 6)]),
    ],
    ids=str,
)
def test_a_late_row_names_the_windows_it_missed(window: Window, missed: list[tuple[int, int]]) -> None:
    step = Windowed(window)
    step.advance(100)
    step.add(("a", 5, 7))
    [row] = step.harness.output(step.results.late).to_dicts()
    assert (row["key"], row["ts"], row["id"], row["step"]) == ("a", 5, 7, "events.window")
    assert (ms(row["event_time"]), ms(row["watermark"]), row["late_by_ms"]) == (5, 100, 95)
    assert sorted((ms(found["start"]), ms(found["end"])) for found in row["windows"]) == missed


def test_a_row_is_late_only_when_all_its_windows_are_forgotten() -> None:
    #   [-4, 6) and [0, 10) are forgotten at 14, [4, 14) is not
    step = Windowed(sw.hopping("10ms", every="4ms"))
    step.advance(13)
    step.add(("a", 5, 0))
    assert step.late_ids() == []
    assert dict(step.harness.last.counts["events.window"]) == {"on_time": 1, "partly_late": 1}
    assert [(row["start"], row["end"]) for row in step.advance(14)] == [(4, 14)]


def test_a_row_between_hopping_windows_is_not_late_but_counted() -> None:
    step = Windowed(sw.hopping("5ms", every="10ms"))
    step.advance(100)
    step.add(("a", 7, 0))
    assert step.late_ids() == []
    assert dict(step.harness.last.counts["events.window"]) == {"no_window": 1}
