"""Count windows: so many rows of a key, in the order of arrival."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.testing import Harness
from slackwater.windows import CountWindow


def counted(window: CountWindow, **aggregates: Any) -> tuple[sw.Pipeline, Any]:  # noqa: ANN401  aggregates of all kinds
    events = sw.stream("events", sw.testing.rows_source("k string, ts long, v long")).event_time("ts")
    aggregates = aggregates or {"vs": sw.collect_list("v"), "n": sw.count()}
    results = events.key_by("k").window(window, name="counted").aggregate(**aggregates)
    pipeline = sw.Pipeline("p", results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory()), key_groups=2)
    return pipeline, results


def obvious(rows: list[tuple[str | None, int]], size: int, every: int) -> list[tuple[str | None, int, list[int]]]:
    """Return the windows that `rows` fill, by a plain loop."""
    seen: dict[str | None, list[int]] = {}
    shown = []
    for key, value in rows:
        mine = seen.setdefault(key, [])
        mine.append(value)
        start = len(mine) - size
        if start >= 0 and start % every == 0:
            shown.append((key, start // every, mine[start:]))
    return shown


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 9)), max_size=40),
    st.integers(1, 5),
    st.integers(1, 7),
    st.lists(st.integers(0, 12), max_size=8),
)
def test_windows_are_those_of_a_plain_loop_in_any_batches(
    rows: list[tuple[str | None, int]], size: int, every: int, cuts: list[int]
) -> None:
    pipeline, results = counted(sw.count_window(size, every=every))
    harness, left = Harness(pipeline), list(enumerate(rows))
    for cut in [*cuts, len(rows)]:
        part, left = left[:cut], left[cut:]
        harness.send("events", [{"k": key, "ts": 10_000 - number, "v": value} for number, (key, value) in part])
        harness.run_batch()
        harness.restart()
    harness.finish()
    found = harness.output(results)
    taken = [(key, index, vs) for key, index, vs in found.select("k", "window_index", "vs").rows()]
    order = sorted(((str(key), index, sorted(vs)) for key, index, vs in taken))
    assert order == sorted((str(key), index, sorted(vs)) for key, index, vs in obvious(rows, size, every))
    assert harness.pieces == 0


def test_time_plays_no_role_and_a_result_has_the_largest_time_of_its_rows() -> None:
    pipeline, results = counted(sw.count_window(2))
    harness = Harness(pipeline)
    harness.advance_watermark(1_000_000)
    harness.send("events", [{"k": "a", "ts": 30, "v": 1}, {"k": "a", "ts": 20, "v": 2}]).run_batch()
    assert harness.output(results).select("window_index", pl.col("event_time").dt.epoch("ms")).rows() == [(0, 30)]


def test_rows_of_a_window_that_never_fills_are_ignored_and_counted() -> None:
    pipeline, results = counted(sw.count_window(2))
    harness = Harness(pipeline)
    harness.send("events", [{"k": "a", "ts": number, "v": 1} for number in range(5)])
    harness.finish()
    assert harness.output(results).height == 2
    assert harness.last.counts["counted"]["ignored"] == 1


def test_a_row_that_an_aggregate_cannot_take_is_a_dead_letter() -> None:
    class Picky(sw.Accumulator):
        output = pl.Int64

        def create(self) -> int:
            return 0

        def add(self, state: int, value: int) -> int:
            if value < 0:
                raise ValueError("negative")
            return state + value

        def merge(self, one: int, other: int) -> int:
            return one + other

        def result(self, state: int) -> int:
            return state

    pipeline, results = counted(sw.count_window(2), total=sw.accumulator(Picky, "v"))
    done = sw.testing.run(pipeline, {"events": [{"k": "a", "ts": 1, "v": value} for value in (1, -1, 2)]})
    assert done[results]["total"].to_list() == [3]
    assert done["events.dead_letters"]["step"].to_list() == ["counted"]


def test_count_windows_chain_into_a_window() -> None:
    events = sw.stream("events", sw.testing.rows_source("k string, ts long")).event_time("ts")
    pairs = events.key_by("k").window(sw.count_window(2), name="pairs").aggregate(n=sw.count())
    per_second = pairs.key_by("k").window(sw.tumbling("1s"), name="per_second").aggregate(pairs=sw.count())
    pipeline = sw.Pipeline("p", per_second.to(sw.sinks.memory()), per_second.late.drop(), events.dead_letters.drop())
    done = sw.testing.run(pipeline, {"events": [{"k": "a", "ts": number * 100} for number in range(20)]})
    assert done[per_second]["pairs"].to_list() == [5, 5]


@pytest.mark.parametrize("size, every", [(0, 1), (1, 0), (1.5, 1), (True, 1), ("3", 1)])
def test_sizes_that_are_no_whole_numbers_are_refused(size: Any, every: Any) -> None:  # noqa: ANN401  wrong on purpose
    with pytest.raises(DefinitionError, match="COUNT_WINDOW_SIZE"):
        sw.count_window(size, every=every)


@pytest.mark.parametrize(
    "options", [{"trigger": sw.every("1s")}, {"accumulation": "discarding"}, {"allowed_lateness": "1s"}]
)
def test_options_that_mean_nothing_are_refused(options: Any) -> None:  # noqa: ANN401  of several kinds
    events = sw.stream("events", sw.testing.rows_source("k string, ts long")).event_time("ts")

    def build() -> None:
        results = events.key_by("k").window(sw.count_window(2), **options).aggregate(n=sw.count())
        sw.Pipeline("p", results.to(sw.sinks.memory()), events.dead_letters.drop())

    with pytest.raises(DefinitionError, match=rf"COUNT_WINDOW_OPTIONS.*; got .*{next(iter(options))}"):
        build()


def test_an_aggregate_with_a_name_of_the_results_own_is_refused() -> None:
    with pytest.raises(DefinitionError, match="COUNT_WINDOW_NAME"):
        counted(sw.count_window(2), window_index=sw.count())


def test_a_late_output_is_refused_because_no_row_is_late() -> None:
    events = sw.stream("events", sw.testing.rows_source("k string, ts long")).event_time("ts")
    results = events.key_by("k").window(sw.count_window(2)).aggregate(n=sw.count())
    with pytest.raises(DefinitionError, match="LATE_NEVER"):
        sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), events.dead_letters.drop())
