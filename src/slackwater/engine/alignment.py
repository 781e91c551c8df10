"""Alignment: which streams are too far ahead of those they share a step with, and have to wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.base.times import MIN_MS
from slackwater.eventtime.clock import Clock, StreamTime
from slackwater.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """The reason why a batch does not read a stream: it is ahead of another by more than its `max_drift`."""

    of: str
    """The slowest of the streams that it shares a step with."""
    by_ms: int


def ahead(plan: Plan, clock: Clock, *, brings: Callable[[str], bool]) -> dict[str, Ahead]:
    """Return the streams that the batch of `clock` does not read.

    A stream waits only for streams that have had an event, have a partition that is neither idle nor finished, and may
    receive more according to `brings`. The slowest stream never waits.
    """
    waiting = {}
    for source in plan.sources:
        drift_ms = None if source.time is None else source.time.max_drift_ms
        if drift_ms is None:
            continue
        met = {name for step in plan.steps if source.name in step.behind_ms for name in step.behind_ms}
        reached = {
            name: clock.streams[name].watermark_ms
            for name in sorted(met - {source.name})
            if _is_live(clock.streams[name]) and brings(name)
        }
        slowest = min(reached, key=reached.__getitem__, default=source.name)
        by_ms = clock.streams[source.name].watermark_ms - clock.streams[slowest].watermark_ms
        if by_ms > drift_ms:
            waiting[source.name] = Ahead(of=slowest, by_ms=by_ms)
    return waiting


def _is_live(time: StreamTime) -> bool:
    return time.watermark_ms > MIN_MS and any(not known.is_aside for known in time.partitions.values())
