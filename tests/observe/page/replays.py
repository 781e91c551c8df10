"""Histories of jobs that do not follow the clock: a month of flights in minutes, and a job of milliseconds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.eventtime.ages import AgeSketch
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.observe.metrics.record import (
    QUANTILES,
    BatchRecord,
    OutputRecord,
    PartitionRecord,
    StepRecord,
    StreamRecord,
)
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.view import shown_record
from tests.observe.page.made_up import job

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
START_MS: Final = 1_792_324_800_000
"""When the jobs start: 2026-10-18 12:00 UTC."""
JANUARY_MS: Final = 1_704_067_200_000
"""2024-01-01 UTC."""


def replayed_feed(*, batches: int = 200, days: int = 30, state: str = "finished") -> JobFeed:
    """Return a month of departures, read within three minutes."""
    return _feed(
        first_ms=JANUARY_MS,
        span_ms=days * DAY_MS,
        took_ms=180_000,
        batches=batches,
        slack_ms=2 * HOUR_MS,
        step={"name": "hourly", "size_ms": HOUR_MS, "offset_ms": 0, "lateness_ms": 6 * HOUR_MS},
        described=job(pipeline="flights", state=state, streams=[{"name": "departures", "slack_ms": 2 * HOUR_MS}]),
    )


def replayed_sessions() -> JobFeed:
    """Return a month of departures in a few batches, with two steps: sessions of a day, and one that has late rows."""
    feed = replayed_feed(batches=12)
    sessions = {"name": "visits", "size_ms": None, "offset_ms": 0, "lateness_ms": 2 * DAY_MS, "gap_ms": DAY_MS}
    quiet = {"late": 0, "refired": 0}
    records = [
        {**each, "steps": {"hourly": {**each["steps"]["hourly"], "late": 5}, "visits": quiet}} for each in feed.records
    ]
    return JobFeed({**feed.job, "steps": [sessions, *feed.job["steps"]]}, records, feed.lateness)


def brief_feed() -> JobFeed:
    """Return a job whose events are milliseconds apart, and which took less than a second."""
    return _feed(
        first_ms=START_MS - 5_000,
        span_ms=800,
        took_ms=900,
        batches=40,
        slack_ms=50,
        step={"name": "ticks", "size_ms": 100, "offset_ms": 0, "lateness_ms": 100},
        described=job(pipeline="ticks", state="finished", streams=[{"name": "departures", "slack_ms": 50}]),
    )


def _feed(
    *,
    first_ms: int,
    span_ms: int,
    took_ms: int,
    batches: int,
    slack_ms: int,
    step: dict[str, Any],
    described: dict[str, Any],
) -> JobFeed:
    dice = np.random.default_rng(1)
    newest = {"0": first_ms, "1": first_ms}
    measured = LatenessSketch.empty()
    watermark: int | None = None
    records = []
    for batch in range(batches):
        now_ms = START_MS + batch * took_ms // batches
        arrived = first_ms + (np.sort(dice.random(400)) + batch) * span_ms / batches
        late = np.where(
            dice.random(400) < 0.03, dice.uniform(1.2, 5, 400) * slack_ms, dice.exponential(slack_ms / 8, 400)
        )
        times = (arrived - late).astype(np.int64)
        ages, behind = AgeSketch(), LatenessSketch.empty()
        ages.observe(pl.Series(times), now_ms)
        for part, before in list(newest.items()):
            own = times[int(part) :: 2]
            measured.observe(own, before)
            newest[part] = behind.observe(own, before)
        missed = 0 if watermark is None else int((times < watermark - step["lateness_ms"]).sum())
        corrected = 0 if watermark is None else int((times < watermark).sum()) - missed
        watermark = min(newest.values()) - slack_ms
        stream = StreamRecord(
            rows=400,
            watermark_ms=watermark,
            out_of_orderness_ms=slack_ms,
            lateness_s={str(q): behind.quantile(q) / 1_000 for q in QUANTILES},
            ages=tuple(ages.histogram(64)),
            oldest_ms=int(times.min()),
            partitions={part: PartitionRecord(rows=200, max_ts_ms=ts) for part, ts in newest.items()},
        )
        made = BatchRecord(
            batch=batch,
            at_ms=now_ms + 3 * took_ms // (4 * batches),
            now_ms=now_ms,
            seconds=took_ms / batches * 0.7 / 1_000,
            phases_s={"front": 0.3 * took_ms / batches / 1_000, "keyed": 0.2 * took_ms / batches / 1_000},
            streams={"departures": stream},
            steps={step["name"]: StepRecord(counts={"late": missed, "refired": corrected}, state_bytes=90_000)},
            outputs={step["name"]: OutputRecord(rows=30)},
        )
        records.append(shown_record(made))
    ends, shares = measured.curve()
    points = [[int(end), float(share)] for end, share in zip(ends, shares, strict=True)]
    lateness = {"departures": {"points": points, "p99_ms": measured.covering(0.99), "rows": measured.count}}
    return JobFeed({**described, "steps": [step], "outputs": {}, "sinks": {}}, records, lateness)
