"""How the watermark moves: per partition, the slowest live one decides, and never back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from slackwater.eventtime.clock import MAX_MS, MIN_MS, PartitionTime, StreamTime


@dataclass(frozen=True, kw_only=True)
class TimePolicy:
    """What a stream's definition says about its watermark."""

    out_of_orderness_ms: int = 0
    idle_after_ms: int | None = None
    follows_processing_time: bool = False


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a batch saw of one partition."""

    rows: int
    max_ts_ms: int
    modified_ms: int = MIN_MS


def advance(
    time: StreamTime,
    policy: TimePolicy,
    *,
    seen: Mapping[str, Seen],
    backlog: frozenset[str],
    now_ms: int,
    may_idle: bool = True,
) -> StreamTime:
    """Return a stream's time after a batch that saw `seen`.

    `backlog` are the partitions known to have data that no batch has read yet; one that was never
    read holds the watermark. A partition is idle when it is silent for `idle_after_ms` and has no
    backlog; bounded runs have no idleness (`may_idle=False`). When every partition is idle, the
    watermark stays where it is.
    """
    partitions = dict(time.partitions)
    for name, facts in seen.items():
        known = partitions.get(name, PartitionTime())
        partitions[name] = PartitionTime(
            max_ts_ms=max(known.max_ts_ms, facts.max_ts_ms),
            active_at_ms=now_ms,
            modified_ms=max(known.modified_ms, facts.modified_ms),
        )
    for name in backlog:
        partitions.setdefault(name, PartitionTime(active_at_ms=now_ms))
    for name, known in partitions.items():
        silent_ms = now_ms - known.active_at_ms
        idle_after = policy.idle_after_ms
        idle = may_idle and idle_after is not None and silent_ms >= idle_after and name not in backlog
        partitions[name] = replace(known, is_idle=idle)
    live = [known.max_ts_ms for known in partitions.values() if not known.is_idle]
    reached = MIN_MS
    if policy.follows_processing_time:
        reached = now_ms
    elif live and min(live) > MIN_MS:
        reached = min(live) - policy.out_of_orderness_ms
    return StreamTime(
        watermark_ms=max(time.watermark_ms, reached), previous_ms=time.watermark_ms, partitions=partitions
    )


def finished(time: StreamTime) -> StreamTime:
    """Return a stream's time at the end of a bounded run: nothing more will come."""
    return replace(time, watermark_ms=MAX_MS)
