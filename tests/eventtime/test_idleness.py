"""Watermarks per partition, with idleness: the cases of Flink's multiplexer and timer, and ours."""

from __future__ import annotations

from typing import Final

import pytest

from slackwater.base.times import MIN_MS
from slackwater.eventtime.clock import StreamTime
from slackwater.eventtime.watermark import PartitionRead, TimePolicy, advance, barren, held_back_ms

SECOND: Final = 1_000
POLICY: Final = TimePolicy(idle_after_ms=30 * SECOND)
NONE: Final[frozenset[str]] = frozenset()
BOTH: Final = frozenset({"0", "1"})


def step(
    time: StreamTime,
    now_s: int,
    /,
    *,
    policy: TimePolicy = POLICY,
    backlog: frozenset[str] = NONE,
    existing: frozenset[str] = NONE,
    gone: frozenset[str] = NONE,
    may_idle: bool = True,
    **seen_s: int | None,
) -> StreamTime:
    """Return the time after a batch at `now_s` that saw `p0=12`: an event at 12 s in partition "0".

    `p0=None` is a batch that read the partition and found no row with a usable time.
    """
    seen = {
        name.removeprefix("p"): PartitionRead(rows=1, max_ts_ms=MIN_MS if at is None else at * SECOND)
        for name, at in seen_s.items()
    }
    return advance(
        time, policy, seen=seen, backlog=backlog, existing=existing, gone=gone, now_ms=now_s * SECOND, may_idle=may_idle
    )


def test_slowest_partition_decides() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    assert time.watermark_ms == 3 * SECOND
    assert (time.held_by, held_back_ms(time)) == ("1", 7 * SECOND)


def test_partition_that_was_never_active_holds_the_watermark_until_it_is_idle() -> None:
    time = step(StreamTime(), 0, existing=BOTH, p0=10)
    assert time.watermark_ms == MIN_MS
    assert time.held_by == "1"
    time = step(time, 29, existing=BOTH, p0=20)
    assert time.watermark_ms == MIN_MS
    time = step(time, 30, existing=BOTH, p0=21)
    assert time.watermark_ms == 21 * SECOND
    assert time.partitions["1"].is_idle


def test_without_idleness_a_partition_that_was_never_active_holds_the_watermark_for_good() -> None:
    time = step(StreamTime(), 0, policy=TimePolicy(), existing=BOTH, p0=10)
    time = step(time, 1_000_000, policy=TimePolicy(), existing=BOTH, p0=900_000)
    assert time.watermark_ms == MIN_MS


def test_silent_partition_is_set_aside_and_the_others_decide() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    time = step(time, 30, p0=40)
    assert time.watermark_ms == 40 * SECOND
    assert time.held_by == "0"


def test_partition_that_comes_back_holds_again_and_never_turns_the_watermark_back() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    time = step(time, 30, p0=40)
    time = step(time, 31, p0=45, p1=20)
    assert time.watermark_ms == 40 * SECOND, "its old event does not turn time back"
    assert not time.partitions["1"].is_idle
    assert time.held_by == "1"
    time = step(time, 32, p0=50, p1=44)
    assert time.watermark_ms == 44 * SECOND, "and it decides again"


@pytest.mark.parametrize("last", ["0", "1", None])
def test_when_all_are_idle_the_watermark_is_the_largest_that_one_had_reached_whichever_fell_silent_last(
    last: str | None,
) -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    if last is not None:
        time = step(time, 20, p0=10) if last == "0" else step(time, 20, p1=3)
    for now_s in (30, 50, 600):
        time = step(time, now_s)
    assert all(part.is_idle for part in time.partitions.values())
    assert (time.watermark_ms, time.held_by) == (10 * SECOND, "")


def test_out_of_orderness_is_kept_when_all_are_idle() -> None:
    policy = TimePolicy(idle_after_ms=30 * SECOND, out_of_orderness_ms=2 * SECOND)
    time = step(step(StreamTime(), 0, policy=policy, p0=10), 100, policy=policy)
    assert time.watermark_ms == 8 * SECOND


def test_partition_that_brings_no_usable_row_is_set_aside_like_a_silent_one() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    for now_s in (10, 20, 29):
        time = step(time, now_s, p0=now_s, p1=None)
        assert time.watermark_ms == 3 * SECOND
    time = step(time, 30, p0=30, p1=None)
    assert time.watermark_ms == 30 * SECOND
    assert barren(time) == ["1"]
    time = step(time, 31, p0=31, p1=31)
    assert not time.partitions["1"].is_idle
    assert barren(time) == []


def test_partition_that_never_brought_a_usable_row_is_set_aside_too() -> None:
    time = step(StreamTime(), 0, p0=10, p1=None)
    assert time.watermark_ms == MIN_MS
    assert step(time, 30, p0=30, p1=None).watermark_ms == 30 * SECOND


def test_partition_whose_backlog_brings_no_usable_row_is_set_aside_and_one_not_read_is_not() -> None:
    waiting = frozenset({"1"})
    time = step(StreamTime(), 0, p0=10, p1=3)
    time = step(time, 40, backlog=waiting, p0=40)
    assert time.watermark_ms == 3 * SECOND, "it was not read"
    time = step(time, 50, backlog=waiting, p0=50, p1=None)
    assert time.watermark_ms == 3 * SECOND, "what it brings is known since now"
    time = step(time, 80, backlog=waiting, p0=80, p1=None)
    assert time.watermark_ms == 80 * SECOND
    time = step(time, 81, backlog=waiting, p0=81)
    assert time.watermark_ms == 81 * SECOND, "and stays set aside in a batch that does not read it"


def test_silent_partition_is_not_named_as_one_without_usable_rows() -> None:
    time = step(step(StreamTime(), 0, p0=10, p1=3), 30, p0=40)
    assert time.partitions["1"].is_idle
    assert barren(time) == []


def test_partition_that_is_gone_for_a_day_is_forgotten() -> None:
    gone, day = frozenset({"1"}), 86_400
    time = step(StreamTime(), 0, policy=TimePolicy(), p0=10, p1=3)
    time = step(time, day - 1, policy=TimePolicy(), gone=gone, p0=100)
    assert time.watermark_ms == 3 * SECOND
    time = step(time, day, policy=TimePolicy(), gone=gone, p0=200)
    assert (list(time.partitions), time.watermark_ms, time.held_by) == (["0"], 200 * SECOND, "0")


def test_partition_that_is_there_or_read_is_never_forgotten() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    assert set(step(time, 1_000_000, p0=11).partitions) == BOTH
    assert set(step(time, 1_000_000, gone=BOTH, p0=11, p1=4).partitions) == BOTH


def test_bounded_run_forgets_no_partition() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    assert set(step(time, 1_000_000, gone=BOTH, may_idle=False).partitions) == BOTH


def test_when_all_are_idle_the_watermark_goes_on_with_the_clock_if_asked_to() -> None:
    policy = TimePolicy(idle_after_ms=30 * SECOND, out_of_orderness_ms=2 * SECOND, goes_on_when_idle=True)
    time = step(StreamTime(), 0, policy=policy, p0=10, p1=3)
    time = step(time, 29, policy=policy)
    assert time.watermark_ms == 1 * SECOND, "not idle yet"
    time = step(time, 30, policy=policy)
    assert time.watermark_ms == (10 + 30 - 2) * SECOND, "the newest event, and the silence since, less the slack"
    time = step(time, 60, policy=policy)
    assert time.watermark_ms == (10 + 60 - 2) * SECOND


def test_stream_that_never_had_an_event_has_no_time_to_go_on_from() -> None:
    policy = TimePolicy(idle_after_ms=SECOND, goes_on_when_idle=True)
    time = step(StreamTime(), 0, policy=policy, existing=BOTH)
    assert step(time, 100, policy=policy, existing=BOTH).watermark_ms == MIN_MS


def test_partition_with_a_backlog_is_not_idle_however_long_it_was_silent() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    time = step(time, 100, backlog=frozenset({"1"}), p0=90)
    assert time.watermark_ms == 3 * SECOND


def test_new_partition_holds_the_watermark_but_does_not_turn_it_back() -> None:
    time = step(StreamTime(), 0, p0=10)
    time = step(time, 1, existing=BOTH, p0=20)
    assert time.watermark_ms == 10 * SECOND
    time = step(time, 2, existing=BOTH, p0=25, p1=15)
    assert time.watermark_ms == 15 * SECOND


def test_holder_is_known_since_the_batch_in_which_it_became_the_slowest() -> None:
    time = step(StreamTime(), 1, p0=10, p1=12)
    time = step(time, 2, p0=11)
    assert (time.held_by, time.held_since_ms) == ("0", 1 * SECOND)
    time = step(time, 3, p0=20)
    assert (time.held_by, time.held_since_ms) == ("1", 3 * SECOND)


def test_partition_state_is_in_the_clock_file() -> None:
    from slackwater.eventtime.clock import Clock

    time = step(step(StreamTime(), 0, p0=10, p1=3), 30, p0=40)
    clock = Clock(batch=2, streams={"events": time}, now_ms=5)
    assert Clock.from_json(clock.to_json()) == clock
