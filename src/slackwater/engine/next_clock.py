"""CLOCK: computes the clock of the next batch from a batch's statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from slackwater.base.times import MIN_MS
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.step_times import reached
from slackwater.eventtime.clock import Clock, StreamTime
from slackwater.eventtime.watermark import PartitionRead, TimePolicy, advance, finished
from slackwater.plan.plan import Plan, SourcePlan


def first_clock(plan: Plan) -> Clock:
    """Return clock 0, which has no watermark."""
    return Clock(batch=0, streams={source.name: StreamTime() for source in plan.sources}, fingerprint=plan.fingerprint)


def next_clock(
    plan: Plan,
    clock: Clock,
    stats: BatchStats,
    *,
    backlog: Mapping[str, frozenset[str]],
    existing: Mapping[str, frozenset[str]] | None = None,
    gone: Mapping[str, frozenset[str]] | None = None,
    may_idle: bool = True,
    ending: frozenset[str] = frozenset(),
) -> Clock:
    """Return the clock that follows `clock`, from the statistics of the batch.

    `ending` are the streams whose partitions without backlog have been read to the end of a bounded run.
    """
    streams = {}
    for source in plan.sources:
        seen = {}
        if source.name in stats.streams:
            seen = {
                name: PartitionRead(rows=part.rows, max_ts_ms=part.max_ts_ms)
                for name, part in stats.streams[source.name].partitions.items()
            }
        before, read = clock.streams[source.name], stats.streams.get(source.name)
        moved = advance(
            before,
            policy(source),
            seen=seen,
            backlog=backlog.get(source.name, frozenset()),
            existing=(existing or {}).get(source.name, frozenset()),
            gone=(gone or {}).get(source.name, frozenset()),
            now_ms=stats.now_ms,
            may_idle=may_idle,
            is_ending=source.name in ending,
        )
        streams[source.name] = replace(moved, rows=before.rows + (0 if read is None else read.rows))
    return Clock(
        batch=clock.batch + 1,
        streams=streams,
        fingerprint=plan.fingerprint,
        steps=reached(plan, clock),
        tables=clock.tables,
        last_now_ms=MIN_MS if clock.now_ms is None else clock.now_ms,
        last_logged_ms=MIN_MS if clock.logged_ms is None else clock.logged_ms,
    )


def final_clock(clock: Clock) -> Clock:
    """Return `clock` with the final watermark, for the last batch of a bounded run."""
    streams = {name: finished(time) for name, time in clock.streams.items()}
    return replace(clock, streams=streams, is_final=True)


def policy(source: SourcePlan) -> TimePolicy:
    """Return the watermark policy of a source stream."""
    time = source.time
    if time is None:
        return TimePolicy()
    return TimePolicy(
        out_of_orderness_ms=time.out_of_orderness_ms,
        idle_after_ms=time.idle_after_ms,
        goes_on_when_idle=time.goes_on_when_idle,
        follows_processing_time=time.clock == "processing",
    )
