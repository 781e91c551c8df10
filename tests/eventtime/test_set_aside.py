"""Streams that are set aside: idle ones, and those that a bounded run has read to their end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.engine.alignment import ahead
from slackwater.engine.step_times import step_time
from slackwater.eventtime.clock import Clock, PartitionTime, StreamTime
from slackwater.eventtime.watermark import PartitionRead, TimePolicy, advance, slowest_ms
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness, rows_source

MINUTE: Final = 60_000


def stream(name: str, **time: Any) -> Stream:  # noqa: ANN401  as event_time takes them
    return sw.stream(name, rows_source("k long, t long")).event_time("t", **time)


def joined(**of_right: Any) -> tuple[Harness, Results]:  # noqa: ANN401  as above
    left, right = stream("left", idle_after="1m"), stream("right", **of_right)
    pairs = left.key_by("k").join(
        right.key_by("k"), between=("0s", "10s"), how="left", name="j", suffixes=("", "_right")
    )
    memory = sw.sinks.memory()
    return Harness(
        sw.Pipeline("p", pairs.to(memory), pairs.late.to(memory), left.dead_letters.drop(), right.dead_letters.drop())
    ), pairs


def send(harness: Harness, name: str, *minutes: float) -> Harness:
    return harness.send(name, [{"k": 1, "t": round(minute * MINUTE)} for minute in minutes])


@pytest.mark.parametrize("when_all_idle", ["wait", "advance"])
@pytest.mark.parametrize("has_had_one", [False, True])
def test_a_silent_stream_holds_a_join_until_it_is_idle(when_all_idle: str, *, has_had_one: bool) -> None:
    harness, pairs = joined(idle_after="5m", when_all_idle=when_all_idle)
    if has_had_one:
        harness.send("right", [{"k": 2, "t": 0}])
    for minute in range(5):
        send(harness, "left", minute).advance_processing_time("1m")
    assert harness.output(pairs).height == 0
    for minute in range(5, 10):
        send(harness, "left", minute).advance_processing_time("1m")
    # Of ten rows the last still waits for a partner, and the one before it for the next batch.
    assert harness.output(pairs).height == 8
    assert harness.last.state["j"]["rows of left"] == 2


def test_without_idle_after_a_silent_stream_holds_a_join_for_good() -> None:
    harness, pairs = joined()
    for minute in range(100):
        send(harness, "left", minute).advance_processing_time("1m")
    assert harness.output(pairs).height == 0
    assert not harness.clock.streams["right"].is_idle


def test_a_stream_that_returns_is_judged_by_the_watermark_as_it_stands() -> None:
    harness, pairs = joined(idle_after="2m")
    for minute in range(6):
        send(harness, "left", minute).advance_processing_time("1m")
    assert harness.clock.streams["right"].is_idle
    send(send(harness, "right", 1, 5.1), "left", 5.2).run_batch()
    assert harness.output(pairs.late).select("t", "side").rows() == [(1 * MINUTE, "right")]
    assert not harness.clock.streams["right"].is_idle
    send(harness, "left", 9).run_batch()
    harness.advance_processing_time("1m")
    # It counts again: the watermark of the join has not moved beyond its newest row.
    assert harness.clock.steps["j"].watermark_ms == round(5.1 * MINUTE)
    assert harness.output(pairs.late).height == 1


def test_when_all_streams_are_idle_the_largest_watermark_decides() -> None:
    harness, pairs = joined(idle_after="1m")
    send(send(harness, "left", 10), "right", 3).run_batch()
    harness.run_batch()
    assert harness.clock.steps["j"].watermark_ms == 3 * MINUTE
    harness.advance_processing_time("1m")
    harness.run_batch()
    assert harness.clock.steps["j"].watermark_ms == 10 * MINUTE
    assert harness.output(pairs).height == 0
    assert harness.clock.streams["left"].is_idle


def test_a_stream_by_processing_time_is_never_idle() -> None:
    moved = advance(
        StreamTime(),
        TimePolicy(follows_processing_time=True, idle_after_ms=1),
        seen={},
        backlog=frozenset(),
        now_ms=100,
    )
    assert not advance(
        moved, TimePolicy(follows_processing_time=True), seen={}, backlog=frozenset(), now_ms=900
    ).is_idle


def test_silence_is_counted_from_the_first_batch_and_survives_a_restart() -> None:
    harness, _ = joined(idle_after="5m")
    harness.now_ms = 1_000 * MINUTE
    harness.run_batch()
    assert not harness.clock.streams["right"].is_idle
    harness.advance_processing_time("4m")
    harness.restart().advance_processing_time("1m")
    assert harness.clock.streams["right"].is_idle


def test_tasks_know_which_streams_are_set_aside() -> None:
    harness, _ = joined(idle_after="5m")
    for minute in range(8):
        send(harness, "left", minute).advance_processing_time("1m")
    clock = replace(harness.clock, now_ms=harness.now_ms)
    [step] = harness.plan.steps
    assert step_time(step, clock).watermark_ms == 7 * MINUTE
    for same in (Clock.from_json(clock.to_json()), Clock.from_property(clock.to_property())):
        assert step_time(step, same) == step_time(step, clock)


def test_a_stream_does_not_wait_for_one_that_is_set_aside() -> None:
    fast, slow = stream("fast", max_drift="10m"), stream("slow")
    pairs = fast.key_by("k").join(slow.key_by("k"), between=("0s", "1m"), name="pairs", suffixes=("", "_slow"))
    letters = [each.dead_letters.drop() for each in (fast, slow)]
    plan = sw.Pipeline("aligned", pairs.to(sw.sinks.memory()), pairs.late.drop(), *letters).plan()

    def waiting(slow: PartitionTime) -> bool:
        far = StreamTime(watermark_ms=60 * MINUTE, partitions={"0": PartitionTime(max_ts_ms=60 * MINUTE)})
        near = StreamTime(watermark_ms=MINUTE, partitions={"0": slow})
        return bool(ahead(plan, Clock(batch=1, streams={"fast": far, "slow": near}), brings=lambda _: True))

    assert waiting(PartitionTime(max_ts_ms=MINUTE))
    assert not waiting(PartitionTime(max_ts_ms=MINUTE, is_idle=True))
    assert not waiting(PartitionTime(max_ts_ms=MINUTE, is_finished=True))


# ------------------------------------------------------------------------------ bounded runs


def batch(
    time: StreamTime, *, left: set[str], is_ending: bool = True, policy: TimePolicy | None = None, **minutes: int
) -> StreamTime:
    """Return the time after a batch of a bounded run that leaves unread records in the partitions `left`."""
    return advance(
        time,
        policy or TimePolicy(),
        seen={name: PartitionRead(rows=1, max_ts_ms=minute * MINUTE) for name, minute in minutes.items()},
        backlog=frozenset(left),
        existing=frozenset({"a", "b", "c"}),
        now_ms=0,
        may_idle=False,
        is_ending=is_ending,
    )


def test_an_empty_partition_holds_nothing_back_in_a_bounded_run() -> None:
    time = batch(StreamTime(), left={"a", "b"}, a=5, b=3)
    assert (time.watermark_ms, time.held_by) == (3 * MINUTE, "b")
    assert time.partitions["c"].is_finished
    assert not time.is_aside


def test_a_partition_holds_back_the_watermark_until_it_is_read_to_its_end() -> None:
    time = batch(StreamTime(), left={"a", "b"}, a=5)
    assert time.watermark_ms == MIN_MS
    time = batch(time, left={"a"}, a=8, b=2)
    assert (time.watermark_ms, time.held_by) == (8 * MINUTE, "a")


def test_a_source_that_does_not_know_its_backlog_finishes_nothing() -> None:
    time = batch(StreamTime(), left=set(), is_ending=False, a=5, b=3)
    assert time.watermark_ms == MIN_MS
    assert not any(known.is_finished for known in time.partitions.values())


def test_when_all_partitions_are_finished_so_is_the_stream_and_it_does_not_move_with_the_clock() -> None:
    policy = TimePolicy(idle_after_ms=1, goes_on_when_idle=True)
    time = batch(StreamTime(), left=set(), policy=policy, a=5, b=3)
    assert (time.watermark_ms, time.is_finished, time.is_idle) == (5 * MINUTE, True, False)
    time = replace(time, previous_ms=0)
    later = advance(time, policy, seen={}, backlog=frozenset(), now_ms=99 * MINUTE, may_idle=False, is_ending=True)
    assert later.watermark_ms == 5 * MINUTE


def test_a_stream_without_any_record_is_finished_at_once() -> None:
    time = advance(StreamTime(), TimePolicy(), seen={}, backlog=frozenset(), now_ms=0, may_idle=False, is_ending=True)
    assert time.is_finished
    assert slowest_ms([time, StreamTime(watermark_ms=7)], [0, 2]) == 5


def test_the_final_watermark_has_no_delay() -> None:
    assert (
        slowest_ms([StreamTime(watermark_ms=MAX_MS), StreamTime(watermark_ms=MAX_MS, is_idle=True)], [9, 0]) == MAX_MS
    )


@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 9), max_size=6), min_size=1),
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)), max_size=12),
)
def test_what_a_bounded_run_sets_aside_makes_no_row_late(
    partitions: dict[str, list[int]], batches: list[dict[str, int]]
) -> None:
    """Each partition is in order, and batches read some rows of some of them, until nothing is left."""
    unread = {name: [at * MINUTE for at in sorted(minutes)] for name, minutes in partitions.items()}
    newest_ms = max((max(times) for times in unread.values() if times), default=MIN_MS)
    time = StreamTime()
    for taken in [*batches, {name: len(rows) for name, rows in unread.items()}]:
        read = {name: unread[name][:count] for name, count in taken.items() if unread.get(name)}
        assert all(ts >= time.watermark_ms for times in read.values() for ts in times)
        unread = {name: times[len(read.get(name, ())) :] for name, times in unread.items()}
        time = advance(
            time,
            TimePolicy(),
            seen={name: PartitionRead(rows=len(times), max_ts_ms=max(times)) for name, times in read.items() if times},
            backlog=frozenset(name for name, times in unread.items() if times),
            existing=frozenset(partitions),
            now_ms=0,
            may_idle=False,
            is_ending=True,
        )
    assert time.watermark_ms == newest_ms
    assert time.is_finished
