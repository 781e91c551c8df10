"""Alignment: which streams are too far ahead of those they meet, and wait in their log for the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.clock.clock import Clock, StreamTime
from slackwater.ground.times import MIN_MS
from slackwater.planning.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """Why a stream is not read in a batch: its watermark is ahead of another's by more than its `max_drift`."""

    of: str
    """The slowest stream among those that it meets in a step."""
    by_ms: int


def ahead(plan: Plan, clock: Clock, *, brings: Callable[[str], bool]) -> dict[str, Ahead]:
    """Return the streams that are not read in the batch of `clock`.

    A stream waits only for others that have had an event, have a partition that is not idle, and of which `brings`
    says that more may come. The slowest of all waits for none.
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
    return time.watermark_ms > MIN_MS and any(not known.is_idle for known in time.partitions.values())
