"""The watermark of a stream: the slowest active partition determines it, and it never moves backwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Final

from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.eventtime.clock import PartitionTime, StreamTime

FORGOTTEN_AFTER_MS: Final = 86_400_000
"""How long after its last row a partition is forgotten, if the source no longer has it."""


@dataclass(frozen=True, kw_only=True)
class TimePolicy:
    """The watermark settings of a stream."""

    out_of_orderness_ms: int = 0
    idle_after_ms: int | None = None
    goes_on_when_idle: bool = False
    """Whether the watermark advances with the clock while every partition is idle."""
    follows_processing_time: bool = False


@dataclass(frozen=True, kw_only=True)
class PartitionRead:
    """What a batch read from one partition."""

    rows: int
    max_ts_ms: int
    """The largest usable time; MIN_MS if no row had one: dead letters, or rows filtered before their time is taken."""


def advance(
    time: StreamTime,
    policy: TimePolicy,
    *,
    seen: Mapping[str, PartitionRead],
    backlog: frozenset[str],
    existing: frozenset[str] = frozenset(),
    gone: frozenset[str] = frozenset(),
    now_ms: int,
    may_idle: bool = True,
    is_ending: bool = False,
) -> StreamTime:
    """Return the time of a stream after a batch that read `seen`.

    `backlog` are the partitions known to have unread data, `existing` all partitions, `gone` those that
    the source no longer has: they are forgotten after a day without rows. A partition that was never
    read also holds back the watermark until it is idle: no usable row for `idle_after_ms`, and no
    backlog, or a backlog that has produced no usable row for as long. Bounded runs have no idleness
    (`may_idle=False`), but with `is_ending` a partition without backlog has been read to its end, and
    is finished. When every partition is idle or finished, the watermark is the largest that one of them
    has reached, and advances with the clock if all are idle and the policy says so. The stream is then
    idle or finished itself, as is one that has had no partition for `idle_after_ms`.
    """
    partitions = _met(time.partitions, seen, backlog | existing, now_ms)
    for name, known in list(partitions.items()):
        silent_ms = now_ms - known.active_at_ms
        if may_idle and name in gone and name not in seen and silent_ms >= FORGOTTEN_AFTER_MS:
            del partitions[name]
            continue
        idle_after = policy.idle_after_ms
        idle = may_idle and idle_after is not None and silent_ms >= idle_after and name not in backlog
        if may_idle and idle_after is not None and known.barren_since_ms is not None:
            idle |= now_ms - known.barren_since_ms >= idle_after and (name in seen or known.is_idle)
        partitions[name] = replace(known, is_idle=idle, is_finished=is_ending and name not in backlog)
    since_ms = time.since_ms if time.since_ms > MIN_MS else now_ms
    is_silent = may_idle and policy.idle_after_ms is not None and now_ms - since_ms >= policy.idle_after_ms
    follows_events = not policy.follows_processing_time
    reached = max(time.watermark_ms, _reached(partitions, policy, now_ms))
    held_by = _holder(partitions) if follows_events else ""
    return StreamTime(
        watermark_ms=reached,
        previous_ms=time.watermark_ms,
        partitions=partitions,
        held_by=held_by,
        held_since_ms=time.held_since_ms if held_by == time.held_by else now_ms,
        since_ms=since_ms,
        is_idle=follows_events and (all(known.is_idle for known in partitions.values()) if partitions else is_silent),
        is_finished=is_ending and all(known.is_finished for known in partitions.values()),
    )


def slowest_ms(streams: Iterable[StreamTime], delays_ms: Iterable[int] = repeat(0)) -> int:
    """Return the watermark of what reads several streams: the smallest, each minus its delay.

    Streams that are set aside do not count; if all are, the largest watermark does.
    """
    reached = [(time.is_aside, delayed_ms(time.watermark_ms, by)) for time, by in zip(streams, delays_ms, strict=False)]
    live = [at_ms for is_aside, at_ms in reached if not is_aside]
    return min(live) if live else max(at_ms for _, at_ms in reached)


def delayed_ms(watermark_ms: int, delay_ms: int) -> int:
    """Return a watermark minus a delay, which is not subtracted from the final one."""
    return watermark_ms if watermark_ms >= MAX_MS else watermark_ms - delay_ms


def barren(time: StreamTime) -> list[str]:
    """Return the partitions that are idle although they are read, because none of their rows has a usable time."""
    return [name for name, known in time.partitions.items() if known.is_idle and known.barren_since_ms is not None]


def held_back_ms(time: StreamTime) -> int:
    """Return how far the holder is behind the next partition that has records; 0 if there is none."""
    others = [
        known.max_ts_ms
        for name, known in time.partitions.items()
        if name != time.held_by and not known.is_aside and known.max_ts_ms > MIN_MS
    ]
    if not others or not time.held_by:
        return 0
    # A holder without records is behind by the whole time range of the others.
    floor = max(time.partitions[time.held_by].max_ts_ms, time.watermark_ms)
    return min(others) - floor if floor > MIN_MS else max(1, max(others) - min(others))


def _met(
    before: Mapping[str, PartitionTime], seen: Mapping[str, PartitionRead], existing: frozenset[str], now_ms: int
) -> dict[str, PartitionTime]:
    partitions = dict(before)
    for name, facts in seen.items():
        known = partitions.get(name, PartitionTime(active_at_ms=now_ms))
        usable = facts.max_ts_ms > MIN_MS
        since_ms = now_ms if known.barren_since_ms is None else known.barren_since_ms
        partitions[name] = PartitionTime(
            max_ts_ms=max(known.max_ts_ms, facts.max_ts_ms),
            active_at_ms=now_ms if usable else known.active_at_ms,
            barren_since_ms=None if usable else since_ms,
            is_idle=known.is_idle,
        )
    for name in sorted(existing):
        partitions.setdefault(name, PartitionTime(active_at_ms=now_ms))
    return partitions


def _reached(partitions: Mapping[str, PartitionTime], policy: TimePolicy, now_ms: int) -> int:
    if policy.follows_processing_time:
        return now_ms
    live = [known.max_ts_ms for known in partitions.values() if not known.is_aside]
    if live:
        return MIN_MS if min(live) == MIN_MS else min(live) - policy.out_of_orderness_ms
    newest = max((known.max_ts_ms for known in partitions.values()), default=MIN_MS)
    if newest == MIN_MS:
        return MIN_MS
    silent_ms = 0
    if policy.goes_on_when_idle and all(known.is_idle for known in partitions.values()):
        # While nothing arrives, time advances from the newest event at the pace of the clock.
        silent_ms = now_ms - max(known.active_at_ms for known in partitions.values())
    return newest + silent_ms - policy.out_of_orderness_ms


def _holder(partitions: Mapping[str, PartitionTime]) -> str:
    live = [(known.max_ts_ms, name) for name, known in partitions.items() if not known.is_aside]
    return min(live)[1] if live else ""


def finished(time: StreamTime) -> StreamTime:
    """Return the time of a stream at the end of a bounded run, with the final watermark."""
    return replace(time, watermark_ms=MAX_MS)
