"""Which windows a row belongs to, against trying every start."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.windows import AlignedWindow
from tests.property.model import windows_of as tried

TIMES = st.integers(-60, 60) | st.integers(-(10**13), 10**13)
_PERIODS = st.integers(1, 25)


def _ms(number: int) -> str:
    return f"{number}ms"


@st.composite
def windows(draw: st.DrawFn) -> AlignedWindow:
    kind, period = draw(st.sampled_from(["tumbling", "hopping", "cumulative"])), draw(_PERIODS)
    if kind == "cumulative":
        size = period * draw(st.integers(1, 5))
        offset = draw(st.integers(1 - size, size - 1))
        return sw.cumulative(_ms(size), every=_ms(period), offset=_ms(offset))
    offset = draw(st.integers(1 - period, period - 1))
    if kind == "tumbling":
        return sw.tumbling(_ms(period), offset=_ms(offset))
    return sw.hopping(_ms(draw(_PERIODS)), every=_ms(period), offset=_ms(offset))


def cells(window: AlignedWindow, times: list[int]) -> pl.DataFrame:
    rows = pl.DataFrame({"__ts": times}, schema={"__ts": pl.Int64})
    return rows.with_columns(window.cell(pl.col("__ts")))


@given(windows(), TIMES)
def test_a_row_is_in_the_windows_that_trying_every_start_finds(window: AlignedWindow, ts_ms: int) -> None:
    assert window.windows_of(ts_ms) == sorted(tried(window, ts_ms))


@given(windows(), st.lists(TIMES, min_size=1, max_size=20))
def test_rows_of_one_cell_share_all_their_windows(window: AlignedWindow, times: list[int]) -> None:
    found: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for ts_ms, start, end, many in cells(window, times).iter_rows():
        assert found.setdefault((start, end, many), window.windows_of(ts_ms)) == window.windows_of(ts_ms)


@given(windows(), TIMES)
def test_a_cell_is_forgotten_with_its_last_window(window: AlignedWindow, ts_ms: int) -> None:
    ends = [end for _, end in window.windows_of(ts_ms)]
    [last] = cells(window, [ts_ms]).select(window.last_end()).to_series()
    if ends:
        assert last == max(ends)


@given(windows(), st.lists(TIMES, max_size=20))
def test_spreading_cells_keeps_their_other_columns(window: AlignedWindow, times: list[int]) -> None:
    copies = window.spread(cells(window, times))
    expected = [(ts_ms, *place) for ts_ms in times for place in window.windows_of(ts_ms)]
    assert sorted(copies.select("__ts", "__start", "__end").rows()) == sorted(expected)


@pytest.mark.parametrize("ts_ms", [-(10**13), -1, 0, 10**13])
def test_the_global_window_holds_all_of_time(ts_ms: int) -> None:
    assert sw.global_window().windows_of(ts_ms) == [(MIN_MS, MAX_MS)]


def test_a_row_between_hopping_windows_is_in_none() -> None:
    #   |----|      |----|
    #   0    5  7   10   15
    window = sw.hopping("5ms", every="10ms")
    assert window.windows_of(4) == [(0, 5)]
    assert window.windows_of(7) == []


def test_a_window_before_the_epoch_ends_where_the_next_begins() -> None:
    assert sw.tumbling("10ms").windows_of(-1) == [(-10, 0)]
    assert sw.tumbling("10ms").windows_of(0) == [(0, 10)]
