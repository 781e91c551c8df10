"""Watermarks per partition, with idleness: the cases of Flink's multiplexer and timer, and ours."""

from __future__ import annotations

from typing import Final

from slackwater.eventtime.clock import MIN_MS, StreamTime
from slackwater.eventtime.watermark import Seen, TimePolicy, advance, held_back_ms

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
    **seen_s: int,
) -> StreamTime:
    """Return the time after a batch at `now_s` that saw `p0=12`: an event at 12 s in partition "0"."""
    seen = {name.removeprefix("p"): Seen(rows=1, max_ts_ms=at * SECOND) for name, at in seen_s.items()}
    return advance(time, policy, seen=seen, backlog=backlog, existing=existing, now_ms=now_s * SECOND)


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


def test_when_all_are_idle_the_watermark_stays() -> None:
    time = step(StreamTime(), 0, p0=10, p1=3)
    time = step(time, 100)
    assert all(part.is_idle for part in time.partitions.values())
    assert (time.watermark_ms, time.held_by) == (3 * SECOND, "")


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
