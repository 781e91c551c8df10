"""Creating the record of a batch from its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from slackwater.base.times import LAST_USABLE_MS, MIN_MS
from slackwater.connectors.delivery_stats import SinkStats
from slackwater.connectors.intake import Lag
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.enrichment.stats import LookupStats
from slackwater.engine.skew import Skew
from slackwater.eventtime.ages import EVENT, INGESTION, AgeSketch
from slackwater.eventtime.clock import StreamTime
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.eventtime.watermark import held_back_ms
from slackwater.observe.metrics.record import (
    QUANTILES,
    BatchRecord,
    LookupRecord,
    OutputRecord,
    PartitionRecord,
    Quantiles,
    StepRecord,
    StreamRecord,
)
from slackwater.observe.metrics.report import BatchReport
from slackwater.operators.state.counted_keys import estimated_keys
from slackwater.operators.step import PORT_ROWS
from slackwater.plan.plan import Plan

_MOST_BARS: Final = 64
_MOST_PARTITIONS: Final = 256


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What the driver knows about a batch in addition to its report."""

    run: int
    delivered_at_ms: int
    """When the last sink had received the batch."""
    at_ms: int
    """When the next clock was written."""
    sinks: Mapping[str, SinkStats]
    spark_s: Mapping[str, float]
    keys: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By step and position of a key group, its number of keys when it last counted."""


def record_of(plan: Plan, report: BatchReport, known: Circumstances) -> BatchRecord:
    """Return the record of a batch, whose statistics must still have their sketches."""
    stats = report.stats
    since_ms = known.delivered_at_ms - stats.now_ms
    return BatchRecord(
        batch=report.batch,
        run=known.run,
        at_ms=known.at_ms,
        now_ms=stats.now_ms,
        seconds=report.seconds,
        phases_s=dict(report.timings_s),
        spark_s=dict(known.spark_s),
        streams={source.name: _stream(plan, report, source.name) for source in plan.sources},
        steps={
            step.name: _step(stats, step.name, estimated_keys(known.keys.get(step.name, {}), plan.key_groups))
            for step in plan.steps
        },
        outputs={
            output.name: _output(report.rows_out.get(output.name, 0), stats.ages.get(output.name, {}), since_ms)
            for output in plan.outputs
        },
        sinks=dict(known.sinks),
        lookups={name: _lookup(asked) for name, asked in report.lookups.items()},
    )


def nothing_yet(plan: Plan, *, run: int, now_ms: int) -> BatchRecord:
    """Return the total of a run that has not delivered a batch: all counts are 0."""
    return BatchRecord(
        batch=-1,
        batches=0,
        run=run,
        at_ms=now_ms,
        now_ms=now_ms,
        streams={source.name: StreamRecord() for source in plan.sources},
        steps={step.name: StepRecord() for step in plan.steps},
        outputs={output.name: OutputRecord() for output in plan.outputs},
    )


def _stream(plan: Plan, report: BatchReport, name: str) -> StreamRecord:
    time, waits = report.next_clock.streams[name], report.ahead.get(name)
    read = report.stats.streams.get(name)
    [source] = [each for each in plan.sources if each.name == name]
    return StreamRecord(
        rows=0 if read is None else read.rows,
        filtered=0 if read is None else read.filtered,
        added=0 if read is None else read.added,
        dead={} if read is None else {reason: counts.total() for reason, counts in read.reasons.items()},
        watermark_ms=_usable(time.watermark_ms),
        held_by=time.held_by,
        held_since_ms=_usable(time.held_since_ms),
        held_back_ms=held_back_ms(time),
        aside="idle" if time.is_idle else "finished" if time.is_finished else "",
        waits_for="" if waits is None else waits.of,
        waits_ms=0 if waits is None else waits.by_ms,
        out_of_orderness_ms=None if source.time is None else source.time.out_of_orderness_ms,
        lateness_s=_lateness(report.stats.lateness.get(name, {})),
        ages=() if read is None or read.ages is None else tuple(read.ages.histogram(_MOST_BARS)),
        oldest_ms=_oldest(None if read is None else read.ages, report.stats.now_ms),
        ahead_of_clock=0 if read is None else read.ahead,
        partitions=_partitions(time, report, name),
    )


def _oldest(ages: AgeSketch | None, now_ms: int) -> int | None:
    return None if ages is None or not ages.count else _usable(now_ms - ages.max_ms)


def _partitions(time: StreamTime, report: BatchReport, name: str) -> dict[str, PartitionRecord]:
    lags: Mapping[str, Lag] = report.lag.get(name, {})
    read = report.stats.streams.get(name)
    known = sorted(time.partitions.items(), key=lambda part: (part[1].is_aside, part[1].max_ts_ms, part[0]))
    found = {}
    for part, facts in known[:_MOST_PARTITIONS]:
        lag = lags.get(part)
        found[part] = PartitionRecord(
            rows=read.partitions[part].rows if read is not None and part in read.partitions else 0,
            max_ts_ms=_usable(facts.max_ts_ms),
            is_idle=facts.is_idle,
            is_finished=facts.is_finished,
            lag=None if lag is None else lag.records,
            lag_per_s=None if lag is None else float(lag.per_second),
        )
    return found


def _step(stats: BatchStats, name: str, keys: int | None) -> StepRecord:
    held, skew = stats.state.get(name, Counter()), stats.skew.get(name, Skew())
    key, share = skew.largest
    return StepRecord(
        counts={what: count for what, count in stats.counts.get(name, {}).items() if count},
        dead=dict(stats.reasons.get(name, {})),
        state_bytes=held["bytes"],
        state_rows=held["rows"],
        state_pieces=held["pieces"],
        open_rows=held["open"],
        state_keys=(keys or None) if held["rows"] else 0,
        largest_key=key,
        largest_share=float(share) if skew.rows else None,
        keys=len(skew.keys) if skew.rows and skew.is_whole else None,
        ports={name.removeprefix(PORT_ROWS): rows for name, rows in held.items() if name.startswith(PORT_ROWS)},
    )


def _output(rows: int, ages: Mapping[str, AgeSketch], since_ms: int) -> OutputRecord:
    return OutputRecord(
        rows=rows, event_s=_latency(ages.get(EVENT), since_ms), ingestion_s=_latency(ages.get(INGESTION), since_ms)
    )


def _latency(ages: AgeSketch | None, since_ms: int) -> Quantiles:
    """Return the latency of rows, from their ages when the batch began and the time since then."""
    if ages is None or not ages.count:
        return {}
    return {str(q): (ages.quantile(q) + since_ms) / 1_000 for q in QUANTILES}


def _lateness(sketches: Mapping[str, LatenessSketch]) -> Quantiles:
    whole = LatenessSketch.merged(sketches.values())
    return {str(q): whole.quantile(q) / 1_000 for q in QUANTILES} if whole.count else {}


def _lookup(asked: LookupStats) -> LookupRecord:
    return LookupRecord(
        requests=asked.requests,
        hits=asked.hits,
        misses=asked.misses,
        missing=asked.missing,
        errors=asked.errors,
        request_s={str(q): asked.quantile_ms(q) / 1_000 for q in QUANTILES} if asked.latency else {},
    )


def _usable(milliseconds: int) -> int | None:
    """Return a time, or None for the start and the end of time."""
    return milliseconds if MIN_MS < milliseconds <= LAST_USABLE_MS else None
