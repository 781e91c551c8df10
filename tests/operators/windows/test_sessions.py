"""Sessions: when they merge, when they end, and how long they may grow."""

from __future__ import annotations

import random
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.operators.windows.session import LONGEST_GAP_MS
from slackwater.operators.windows.triggers import Trigger
from slackwater.plan.streams import Output, Stream
from slackwater.testing import rows_source, run
from tests.operators.windows.windowed import Windowed, panes

LONGEST = 30
GAP = 8


def test_event_exactly_one_gap_later_joins_the_session() -> None:
    step = Windowed(sw.session("10ms"))
    step.add(("a", 0, 0), ("a", 10, 1))
    assert panes(step.advance(20)) == []
    assert panes(step.advance(21)) == [(0, 20, [0, 1], "on_time")]


def test_event_exactly_one_gap_later_begins_a_session_where_touching_is_separate() -> None:
    step = Windowed(sw.session("10ms", touching="separate"))
    step.add(("a", 0, 0), ("a", 10, 1))
    assert panes(step.advance(20)) == [(0, 10, [0], "on_time"), (10, 20, [1], "on_time")]


def test_a_late_event_between_two_sessions_makes_them_one_and_withdraws_both() -> None:
    #   0----10    15----25      8 joins them
    step = Windowed(sw.session("10ms"), allowed_lateness="100ms", accumulation="retracting")
    step.add(("a", 0, 0), ("a", 15, 1))
    assert panes(step.advance(30)) == [(0, 10, [0], "on_time"), (15, 25, [1], "on_time")]
    assert panes(step.add(("a", 8, 2))) == [(0, 10, [0], "-late"), (0, 25, [0, 2, 1], "late"), (15, 25, [1], "-late")]


def test_an_old_event_is_kept_if_its_session_is_alive_and_late_if_not() -> None:
    step = Windowed(sw.session("10ms"))
    step.add(("a", 100, 0), ("b", 50, 1))
    step.advance(105)
    shown = step.add(("a", 92, 2), ("b", 42, 3))
    assert shown == []
    assert step.late_ids() == [3]
    assert panes(step.advance(111)) == [(92, 110, [2, 0], "on_time")]


def test_old_events_are_judged_as_a_batch_whatever_their_order() -> None:
    late = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        step = Windowed(sw.session("10ms"))
        step.add(("z", 0, 9))
        step.advance(105)
        rows = [("a", 82, 0), ("a", 90, 1), ("a", 98, 2)]
        step.add(*(rows[number] for number in order))
        late.append(step.late_ids())
        assert panes(step.advance(109)) == [(82, 108, [0, 1, 2], "on_time")]
    assert late == [[], [], []]


def test_row_at_the_watermark_joins_the_session_that_ends_there() -> None:
    step = Windowed(sw.session("10ms"))
    step.add(("a", 0, 0), ("b", 0, 9))
    assert step.advance(10) == []
    step.add(("a", 10, 1))
    assert panes(step.advance(11)) == [(0, 10, [9], "on_time")]
    assert panes(step.advance(21)) == [(0, 20, [0, 1], "on_time")]
    assert step.late_ids() == []


def test_row_at_the_watermark_begins_a_session_where_touching_is_separate() -> None:
    step = Windowed(sw.session("10ms", touching="separate"))
    step.add(("a", 0, 0))
    assert panes(step.advance(10)) == [(0, 10, [0], "on_time")]
    step.add(("a", 10, 1))
    assert panes(step.advance(20)) == [(10, 20, [1], "on_time")]
    assert step.late_ids() == []


def on_time(times: list[int], cuts: list[int], *, seed: int) -> Windowed:
    """Feed rows in batches such that none is behind the watermark."""
    step = Windowed(sw.session(f"{GAP}ms", max_length=f"{LONGEST}ms"))
    rows = [("a", ts, number) for number, ts in enumerate(times)]
    edges = sorted({0, *(cut % (len(rows) + 1) for cut in cuts), len(rows)})
    dice = random.Random(seed)
    for start, end in pairwise(edges):
        step.add(*rows[start:end])
        if rest := times[end:]:
            step.advance(min(rest) - dice.randint(0, 6))
    step.finish()
    return step


@given(
    st.lists(st.integers(0, 150), min_size=1, max_size=25), st.lists(st.integers(0, 100), max_size=6), st.integers(0, 5)
)
def test_cut_sessions_do_not_depend_on_the_batches(times: list[int], cuts: list[int], seed: int) -> None:
    step = on_time(times, cuts, seed=seed)
    assert step.late_ids() == []
    shown = step.harness.output(step.results)
    found = sorted((row["window_start"], row["window_end"], sorted(row["ids"])) for row in shown.to_dicts())
    at_once = on_time(times, [], seed=seed)
    same = at_once.harness.output(at_once.results).to_dicts()
    assert found == sorted((row["window_start"], row["window_end"], sorted(row["ids"])) for row in same)
    assert sorted(number for _, _, ids in found for number in ids) == list(range(len(times)))


def cut_by_hand(times: list[int]) -> list[tuple[int, int, int]]:
    """Return (start, end, rows) of sessions that take, in order of time, what starts before their maximum."""
    sessions: list[list[int]] = []
    for ts in sorted(times):
        joins = sessions and ts <= sessions[-1][-1] + GAP and ts < sessions[-1][0] + LONGEST
        if joins:
            sessions[-1].append(ts)
        else:
            sessions.append([ts])
    return [(found[0], min(found[-1] + GAP, found[0] + LONGEST), len(found)) for found in sessions]


@given(st.lists(st.integers(-50, 150), min_size=1, max_size=25))
def test_a_session_takes_what_starts_before_its_maximum(times: list[int]) -> None:
    step = Windowed(sw.session(f"{GAP}ms", max_length=f"{LONGEST}ms"))
    step.add(*(("a", ts, number) for number, ts in enumerate(times)))
    shown = [(row["start"], row["end"], len(row["ids"])) for row in step.finish()]
    assert sorted(shown) == cut_by_hand(times)


TRIGGERS = [
    sw.after_watermark(),
    sw.after_watermark(early=sw.after_count(1)),
    sw.after_count(1),
    sw.every_event_time("5ms"),
]


@given(
    st.lists(st.lists(st.integers(0, 150), max_size=6), max_size=6),
    st.sampled_from(TRIGGERS),
    st.sampled_from(["accumulating", "retracting", "discarding"]),
)
def test_a_cut_session_holds_the_rows_inside_it_and_no_others(
    batches: list[list[int]], trigger: Trigger, accumulation: str
) -> None:
    window = sw.session(f"{GAP}ms", max_length=f"{LONGEST}ms")
    step = Windowed(window, trigger=trigger, accumulation=accumulation, allowed_lateness="40ms")
    times = dict(enumerate(ts for batch in batches for ts in batch))
    numbers, shown = iter(times), []
    for at, batch in enumerate(batches):
        shown += step.add(*(("a", ts, next(numbers)) for ts in batch))
        shown += step.advance(at * 20)
    shown += step.finish()
    for row in shown:
        assert row["end"] - row["start"] <= LONGEST
        assert all(row["start"] <= times[number] < row["end"] for number in row["ids"])
    ids = [number for row in shown for number in row["ids"]]
    assert sorted({*ids} | {*step.late_ids()}) == list(times)
    if accumulation == "discarding":
        assert sorted([*ids, *step.late_ids()]) == list(times)
    assert step.harness.pieces == 0


@given(
    st.permutations([0, 40, 80, 110, 150, 190, 230]), st.integers(1, 7), st.sampled_from(["accumulating", "retracting"])
)
def test_rows_in_any_order_and_batches_are_cut_alike(order: list[int], size: int, accumulation: str) -> None:
    """[0 40 80] [110 150 190] [230], though a later row was shown in a session that an earlier one then cut off."""
    for options in ({"trigger": sw.after_watermark(early=sw.after_count(1))}, {"allowed_lateness": "1h"}):
        step = Windowed(sw.session("50ms", max_length="100ms"), accumulation=accumulation, **options)
        shown = step.advance(1_000) if "allowed_lateness" in options else []
        for start in range(0, len(order), size):
            shown += step.add(*(("a", ts, ts) for ts in order[start : start + size]))
        shown += step.finish()
        stands: dict[tuple[int, int], list[int]] = {}
        for row in shown:
            if row["is_retraction"]:
                assert stands.pop((row["start"], row["end"])) == sorted(row["ids"])
            else:
                stands[row["start"], row["end"]] = sorted(row["ids"])
        expected = {(0, 100): [0, 40, 80], (110, 210): [110, 150, 190], (230, 280): [230]}
        if accumulation == "accumulating":
            stands = {bounds: ids for bounds, ids in stands.items() if bounds in expected}
        assert stands == expected


@pytest.mark.parametrize("many", [40])
def test_sessions_that_keep_growing_hold_few_pieces(many: int) -> None:
    step = Windowed(sw.session("10ms"))
    for number in range(many):
        step.add(("a", number * 5, number))
    assert step.harness.pieces <= 17
    assert panes(step.finish()) == [(0, (many - 1) * 5 + 10, list(range(many)), "on_time")]


def gaps(gap: str, rows: list[tuple[int, int | None]]) -> list[tuple[int, int]]:
    """Return (rows, length in milliseconds) of the sessions of rows (time, gap)."""
    events = sw.stream("events", rows_source(f"key string, ts long, gap {gap}")).event_time("ts")
    results = events.key_by("key").window(sw.session(pl.col("gap"))).aggregate(n=sw.count())
    ended: list[Stream | Output] = [results, results.late, events.dead_letters]
    pipeline = sw.Pipeline("gaps", *(output.to(sw.sinks.memory()) for output in ended))
    shown = run(pipeline, {"events": [{"key": "a", "ts": ts, "gap": own} for ts, own in rows]})[results]
    length = (shown["window_end"] - shown["window_start"]).dt.total_milliseconds()
    return list(zip(shown["n"].to_list(), length.to_list(), strict=True))


def test_each_row_may_bring_its_own_gap() -> None:
    assert gaps("long", [(0, 5), (4, 50), (40, 5), (60, 5)]) == [(3, 54), (1, 5)]


def test_a_row_without_a_usable_gap_is_a_session_of_its_own_instant() -> None:
    assert gaps("long", [(0, None), (10, -3), (20, 0), (30, 10**18)]) == [(1, 1)] * 3 + [(1, LONGEST_GAP_MS)]


def test_a_gap_that_is_no_whole_number_is_refused_when_the_pipeline_is_built() -> None:
    with pytest.raises(DefinitionError, match="whole number of milliseconds") as refused:
        gaps("double", [])
    assert refused.value.code == "SESSION_GAP_TYPE"
