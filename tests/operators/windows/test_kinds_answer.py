"""Nobody asks which kind a window is: one that derives from `Window` alone is joined, checked and tested as others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import slackwater as sw
from slackwater.formats.undecoded import Undecoded
from slackwater.observe.checker import Facts
from slackwater.operators.windows.aligned import AlignedWindow
from slackwater.operators.windows.front import WindowFront
from slackwater.operators.windows.operator import WindowOperator
from slackwater.operators.windows.spec import WindowSpec
from slackwater.testing import conformance

DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Shifts(sw.windows.Window):
    """Shifts of a plant: some days each, kept by another kind."""

    days: int

    @property
    def _inner(self) -> AlignedWindow:
        return sw.tumbling(f"{self.days}d")

    def windows_of(self, ts_ms: int) -> list[tuple[int, int]]:
        return self._inner.windows_of(ts_ms)

    def longest_ms(self) -> int | None:
        return self.days * DAY_MS

    def joinable(self) -> AlignedWindow:
        return self._inner

    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:
        return self._inner.front(spec, undecoded)

    def operator(self, spec: WindowSpec) -> WindowOperator:
        return self._inner.operator(spec)

    def __str__(self) -> str:
        return f"shifts of {self.days}d"


def stream(name: str) -> Any:  # noqa: ANN401  a stream
    return sw.stream(name, sw.testing.rows_source("k string, v long, ts long")).event_time("ts")


def test_checker_asks_a_kind_how_long_its_windows_are() -> None:
    rows = stream("rows")
    kept = rows.key_by("k").window(Shifts(days=3), name="w").aggregate(vs=sw.collect_list("v"))
    pipeline = sw.Pipeline("p", kept.to(sw.sinks.memory()), kept.late.drop(), rows.dead_letters.drop())
    found = {finding.code: finding.what for finding in pipeline.check(facts=Facts(age_ms=60_000)).all}
    assert "windows of 3d keep all values of vs" in found["SW203"]
    assert "its windows are 3d long" in found["SW206"]


def test_window_join_asks_a_kind_for_windows_that_streams_can_share() -> None:
    left, right = stream("left"), stream("right")
    joined = left.key_by("k").window(Shifts(days=1)).join(right.key_by("k").window(Shifts(days=1)), name="j")
    outputs = [joined.to(sw.sinks.memory()), joined.late.drop(), left.dead_letters.drop(), right.dead_letters.drop()]
    outcome = sw.testing.run(
        sw.Pipeline("p", *outputs),
        {
            "left": [{"k": "a", "v": 1, "ts": 5}],
            "right": [{"k": "a", "v": 2, "ts": 9}, {"k": "a", "v": 3, "ts": DAY_MS}],
        },
    )
    assert outcome[joined].select("v", "v_right").rows() == [(1, 2)]


@pytest.mark.parametrize(
    "window, windows",
    [
        (Shifts(days=1), [[0, DAY_MS]]),
        (sw.session("10ms"), [[7, 17]]),
        (sw.sliding("10ms"), [[-2, 8]]),
        (sw.count_window(3), []),
    ],
    ids=str,
)
def test_conformance_case_of_any_kind_asks_for_the_windows_of_an_event(
    window: sw.windows.Window, windows: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformance, "window_of", lambda _: window)
    case = {
        "id": "x",
        "operator": "assign",
        "params": {"window": {"type": "own"}},
        "steps": [{"events": [{"ts_ms": 7}], "expect_windows": windows}],
    }
    assert conformance.check(case, "memory", ["whole"]) == []


def test_conformance_case_may_give_a_row_its_own_gap() -> None:
    steps = [
        {"events": [{"ts_ms": 7, "gap_ms": 3}], "expect_windows": [[7, 10]]},
        {"events": [{"ts_ms": 7}], "expect_windows": [[7, 12]]},
    ]
    case = {"id": "x", "operator": "assign", "params": {"window": {"type": "session", "gap_ms": 5}}, "steps": steps}
    assert conformance.check(case, "memory", ["whole"]) == []
