"""The record of a batch in the form that the page draws."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from slackwater.connectors.delivery_stats import SinkStats
from slackwater.observe.metrics.record import (
    BatchRecord,
    LookupRecord,
    OutputRecord,
    PartitionRecord,
    StepRecord,
    StreamRecord,
)
from slackwater.observe.page.job_feed import Shown

AHEAD: Final = "ahead_of_clock"
"""The reason of dead letters whose clocks run ahead."""
_WIDEST: Final = 1.3
"""A bar of a histogram of ages ends at most this many times as far from zero as it starts."""


def shown_record(record: BatchRecord) -> Shown:
    """Return a batch in the form that the page draws."""
    return {
        "batch": record.batch,
        "run": record.run,
        "at": record.at_ms,
        "now": record.now_ms,
        "seconds": record.seconds,
        "phases": record.phases_s,
        "rows": record.rows,
        "late": sum(step.counts.get("late", 0) for step in record.steps.values()),
        "streams": {name: _stream(each) for name, each in record.streams.items()},
        "steps": {name: _step(each) for name, each in record.steps.items()},
        "outputs": {name: _output(each) for name, each in record.outputs.items()},
        "sinks": {name: _sink(each) for name, each in record.sinks.items()},
        "lookups": {name: _lookup(each) for name, each in record.lookups.items()},
    }


def _stream(record: StreamRecord) -> Shown:
    return {
        "rows": record.rows,
        "watermark": record.watermark_ms,
        "ages": _bars(record.ages),
        "oldest": record.oldest_ms,
        "behind": _behind(record),
        "ahead": record.dead.get(AHEAD, 0) + record.ahead_of_clock,
        "dead": record.dead,
        "held_by": record.held_by if record.held_back_ms > 0 else "",
        "aside": record.aside,
        "waits": {"of": record.waits_for, "by_ms": record.waits_ms} if record.waits_for else None,
        "partitions": {name: _partition(each) for name, each in record.partitions.items()},
    }


def _bars(ages: tuple[tuple[int, int], ...]) -> list[list[int]]:
    """Return a histogram as [from, to, rows]; the end of a bar is not stored, but it is not after the next start."""
    starts = [*(low for low, _ in ages), 1 << 62]
    between = zip(ages, pairwise(starts), strict=True)
    return [[low, min(end, round(low * _WIDEST) + 1), rows] for (low, rows), (_, end) in between]


def _behind(record: StreamRecord) -> list[list[float]]:
    """Return how far rows were behind the newest earlier one, as [from, to, rows] in milliseconds, for all but 1 %."""
    bars, low, seen = [], 0, 0.0
    for q, seconds in sorted((float(name), seconds) for name, seconds in record.lateness_s.items()):
        high = round(seconds * 1_000)
        bars.append([low, high, (q - seen) * record.rows])
        low, seen = high, q
    return bars


def _partition(record: PartitionRecord) -> Shown:
    return {
        "max_ts": record.max_ts_ms,
        "rows": record.rows,
        "idle": record.is_idle,
        "finished": record.is_finished,
        "lag": record.lag,
    }


def _step(record: StepRecord) -> Shown:
    return {
        "late": record.counts.get("late", 0),
        "refired": record.counts.get("refired", 0),
        "dead": record.dead,
        "bytes": record.state_bytes,
        "rows": record.state_rows,
        "keys": record.state_keys,
        "share": record.largest_share,
        "ports": record.ports,
    }


def _output(record: OutputRecord) -> Shown:
    latency = {name: record.event_s.get(q) for name, q in (("p50", "0.5"), ("p99", "0.99"))}
    return {"rows": record.rows, **{name: _in_ms(seconds) for name, seconds in latency.items()}}


def _sink(record: SinkStats) -> Shown:
    return {
        "rows": record.rows,
        "seconds": record.seconds,
        "waited": record.waited_s,
        "retries": record.retries,
        "last": record.last_batch,
    }


def _lookup(record: LookupRecord) -> Shown:
    counts = {name: getattr(record, name) for name in ("requests", "hits", "misses", "missing", "errors")}
    return {**counts, "p99": _in_ms(record.request_s.get("0.99"))}


def _in_ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)
