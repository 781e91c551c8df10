"""What the browser gets: a job's description, its records, and how late its rows were."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from slackwater.clock.lateness import LatenessSketch
from slackwater.metrics.record import BatchRecord, OutputRecord, PartitionRecord, StepRecord, StreamRecord
from slackwater.page.feed import Shown
from slackwater.planning.plan import Plan

AHEAD: Final = "ahead_of_clock"
"""The reason of dead letters whose clocks run ahead."""
_P99: Final = 0.99
_MOST_POINTS: Final = 400
_WIDEST: Final = 1.3
"""Neighbouring bars of a histogram of ages start at most so many times as far from zero."""


def shown_job(plan: Plan, *, state: str, starts: int = 1, svg: str | None = None) -> Shown:
    """Return what a job is."""
    steps = []
    for step in plan.steps:
        band = step.spec.band
        size_ms, offset_ms = band or (None, 0)
        steps.append(
            {"name": step.name, "size_ms": size_ms, "offset_ms": offset_ms, "lateness_ms": step.spec.lateness_ms}
        )
    slack = {each.name: 0 if each.time is None else each.time.out_of_orderness_ms for each in plan.sources}
    return {
        "pipeline": plan.name,
        "state": state,
        "starts": starts,
        "streams": [{"name": name, "slack_ms": slack_ms} for name, slack_ms in slack.items()],
        "steps": steps,
        "outputs": {each.name: " and ".join(map(str, each.sinks)) for each in plan.outputs},
        "svg": svg,
    }


def shown_record(record: BatchRecord, samples: Mapping[str, str] | None = None) -> Shown:
    """Return a batch as the page draws it; `samples` are dead letters by reason, for those who may see data."""
    seconds = {each.output: each.seconds for each in record.sinks.values()}
    return {
        "batch": record.batch,
        "at": record.at_ms,
        "now": record.now_ms,
        "seconds": record.seconds,
        "phases": record.phases_s,
        "rows": record.rows,
        "late": sum(step.counts.get("late", 0) for step in record.steps.values()),
        "streams": {name: _stream(each) for name, each in record.streams.items()},
        "steps": {name: _step(each) for name, each in record.steps.items()},
        "outputs": {name: _output(each, seconds.get(name)) for name, each in record.outputs.items()},
        "samples": dict(samples or {}),
    }


def shown_lateness(measured: Mapping[str, Mapping[str, LatenessSketch]]) -> Shown:
    """Return, for each stream, the share of rows later than each duration, and what covers 99 % of them."""
    return {stream: _lateness(LatenessSketch.merged(sketches.values())) for stream, sketches in measured.items()}


def _lateness(sketch: LatenessSketch) -> Shown:
    ends, shares = sketch.curve()
    every = max(1, len(ends) // _MOST_POINTS)
    points = [[0, sketch.share_later_than(0)]]
    points += [[int(end), float(share)] for end, share in zip(ends[::every], shares[::every], strict=True)]
    return {"points": points, "p99_ms": sketch.covering(_P99), "rows": sketch.count}


def _stream(record: StreamRecord) -> Shown:
    return {
        "rows": record.rows,
        "watermark": record.watermark_ms,
        "ages": _bars(record.ages),
        "ahead": record.dead.get(AHEAD, 0) + record.ahead_of_clock,
        "dead": record.dead,
        "held_by": record.held_by if record.held_back_ms > 0 else "",
        "waits": {"of": record.waits_for, "by_ms": record.waits_ms} if record.waits_for else None,
        "partitions": {name: _partition(each) for name, each in record.partitions.items()},
    }


def _bars(ages: tuple[tuple[int, int], ...]) -> list[list[int]]:
    """Return a histogram as [from, to, rows]; where a bar ends is not kept, but it is before the next one."""
    ends = [following for (_, _), (following, _) in pairwise(ages)]
    return [
        [low, min(end, round(low * _WIDEST) + 1), rows] for (low, rows), end in zip(ages, [*ends, 1 << 62], strict=True)
    ]


def _partition(record: PartitionRecord) -> Shown:
    return {"max_ts": record.max_ts_ms, "rows": record.rows, "idle": record.is_idle, "lag": record.lag}


def _step(record: StepRecord) -> Shown:
    return {
        "late": record.counts.get("late", 0),
        "bytes": record.state_bytes,
        "rows": record.state_rows,
        "share": record.largest_share,
    }


def _output(record: OutputRecord, seconds: float | None) -> Shown:
    latency = {name: record.event_s.get(q) for name, q in (("p50", "0.5"), ("p99", "0.99"))}
    in_ms = {name: None if value is None else round(value * 1_000) for name, value in latency.items()}
    return {"rows": record.rows, **in_ms, "seconds": seconds}
