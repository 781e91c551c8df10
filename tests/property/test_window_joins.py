"""Window joins against all pairs of rows in all windows, compared one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.operators.joins.step import How
from slackwater.plan.streams import Results, WindowedStream
from slackwater.windows import AlignedWindow
from tests.property.join_streams import Arrival, Batch, Joined, Row, Side, batches, pipeline, run, source
from tests.property.streams import ALIGNED

Shown = tuple[int | None, int | None, int, int]


@dataclass(frozen=True)
class Setup:
    """One window join."""

    window: AlignedWindow
    how: How = "inner"
    lateness_ms: int = 0
    key_groups: int = 4

    def pipeline(self) -> tuple[sw.Pipeline, Results]:
        results = self.windowed("left").join(self.windowed("right"), how=self.how, name="joined")
        return pipeline(results, key_groups=self.key_groups), results

    def windowed(self, side: Side) -> WindowedStream:
        return source(side).key_by("key").window(self.window, allowed_lateness=f"{self.lateness_ms}ms")

    def taken(self, arrival: Arrival) -> list[tuple[int, int]]:
        """Return the windows that are not forgotten when a row comes."""
        windows = self.window.windows_of(arrival.row.ts_ms)
        return [(start, end) for start, end in windows if end + self.lateness_ms > arrival.watermark_ms]

    def pads(self, side: str) -> bool:
        return self.how in ("full", side)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    how: How = draw(st.sampled_from(["inner", "inner", "left", "right", "full"]))
    lateness_ms = draw(st.sampled_from([0, 15, 60])) if how == "inner" else 0
    window = draw(ALIGNED)
    assert isinstance(window, AlignedWindow)
    return Setup(window, how, lateness_ms, draw(st.sampled_from([1, 4])))


def shown(done: Joined) -> Counter[Shown]:
    ms = [done.results[name].dt.epoch("ms") for name in ("window_start", "window_end")]
    return Counter(done.results.select("id", "id_right").with_columns(ms).rows())


def all_pairs(setup: Setup, arrivals: list[Arrival]) -> Counter[Shown]:
    """Return what every window shows of the rows that it took."""
    windows: dict[tuple[int, int], list[Row]] = {}
    for arrival in arrivals:
        for place in setup.taken(arrival):
            windows.setdefault(place, []).append(arrival.row)
    found: list[Shown] = []
    for place, rows in windows.items():
        left, right = ([row for row in rows if row.side == side] for side in ("left", "right"))
        pairs = [(mine.id, other.id) for mine in left for other in right if mine.key == other.key is not None]
        found += [(*pair, *place) for pair in pairs]
        if setup.pads("left"):
            found += [(row.id, None, *place) for row in left if row.id not in {mine for mine, _ in pairs}]
        if setup.pads("right"):
            found += [(None, row.id, *place) for row in right if row.id not in {other for _, other in pairs}]
    return Counter(found)


@given(setups(), batches())
def test_results_are_all_pairs_that_share_a_window_and_the_rows_that_met_none(
    setup: Setup, stream: list[Batch]
) -> None:
    done = run(setup, stream)
    assert shown(done) == all_pairs(setup, done.arrivals)


@given(setups(), batches())
def test_every_row_is_in_exactly_one_account(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    nowhere = [each for each in done.arrivals if not setup.window.windows_of(each.row.ts_ms)]
    late = [each.row.id for each in done.arrivals if each not in nowhere and not setup.taken(each)]
    keyless = [each for each in done.arrivals if each.row.key is None and not setup.pads(each.row.side)]
    assert sorted(done.harness.output("joined.late")["id"].to_list()) == sorted(late)
    assert done.counts["late"] == len(late)
    assert done.counts["no_window"] == len(nowhere)
    assert done.counts["unmatched"] == sum(bool(setup.taken(each)) for each in keyless)
    accounts = ("on_time", "refired", "late", "no_window", "unmatched")
    assert sum(done.counts[account] for account in accounts) == len(done.arrivals)
