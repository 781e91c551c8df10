"""The metrics of a job by name. Users build dashboards and alerts on these names, so they do not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from slackwater.connectors.delivery_stats import SinkStats
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.record import PartitionRecord, Quantiles, StepRecord, StreamRecord

Sample = tuple[tuple[str, ...], float | None]
"""The values of a family's labels, and the figure; None means no sample."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """One metric: its name as scraped, its labels apart from the pipeline, and how to get its samples."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    samples: Callable[[Live], Iterable[Sample]]

    @property
    def is_counter(self) -> bool:
        """Whether the metric is a counter."""
        return self.name.endswith("_total")


def _streams(value: Callable[[StreamRecord], float | None]) -> Callable[[Live], Iterable[Sample]]:
    return lambda live: [((name,), value(each)) for name, each in live.last.streams.items()]


def _stream_totals(value: Callable[[StreamRecord], float]) -> Callable[[Live], Iterable[Sample]]:
    return lambda live: [((name,), value(each)) for name, each in live.total.streams.items()]


def _partitions(value: Callable[[PartitionRecord], float | None]) -> Callable[[Live], Iterable[Sample]]:
    def samples(live: Live) -> Iterator[Sample]:
        for stream, each in live.last.streams.items():
            for name, part in each.partitions.items():
                yield (stream, name), value(part)

    return samples


def _steps(value: Callable[[StepRecord], float | None]) -> Callable[[Live], Iterable[Sample]]:
    return lambda live: [((name,), value(each)) for name, each in live.last.steps.items()]


def _step_totals(what: str) -> Callable[[Live], Iterable[Sample]]:
    return lambda live: [((name,), each.counts.get(what, 0)) for name, each in live.total.steps.items()]


def _sinks(value: Callable[[SinkStats], float]) -> Callable[[Live], Iterable[Sample]]:
    return lambda live: [((name,), value(each)) for name, each in live.last.sinks.items()]


def _quantiles(places: Iterable[tuple[tuple[str, ...], Quantiles]]) -> Iterator[Sample]:
    for labels, quantiles in places:
        for q, seconds in quantiles.items():
            yield (*labels, q), seconds


def _watermark_lags(live: Live) -> Iterator[Sample]:
    for name, each in live.last.streams.items():
        yield (name,), _behind(live, each.watermark_ms)


def _partition_lags(live: Live) -> Iterator[Sample]:
    for stream, each in live.last.streams.items():
        for name, part in each.partitions.items():
            behind = _behind(live, part.max_ts_ms)
            yield (stream, name), None if behind is None else behind + (each.out_of_orderness_ms or 0) / 1_000


def _behind(live: Live, at_ms: int | None) -> float | None:
    """Return how many seconds a time is behind the clock of the last batch."""
    return None if at_ms is None else (live.last.now_ms - at_ms) / 1_000


def _holders(live: Live) -> Iterator[Sample]:
    for stream, each in live.last.streams.items():
        for name in each.partitions:
            yield (stream, name), float(name == each.held_by)


def _latencies(live: Live) -> Iterator[Sample]:
    for name, each in live.last.outputs.items():
        for since, quantiles in (("event", each.event_s), ("ingestion", each.ingestion_s)):
            for q, seconds in quantiles.items():
                yield (name, q, since), seconds


def _filtered(live: Live) -> Iterator[Sample]:
    for name, stream in live.total.streams.items():
        yield (name,), stream.filtered
    for name, step in live.total.steps.items():
        yield (name,), step.counts.get("filtered", 0)


def _lookup_keys(live: Live) -> Iterator[Sample]:
    for name, asked in live.total.lookups.items():
        yield (name, "hit"), asked.hits
        yield (name, "miss"), asked.misses


def _labelled(figures: Mapping[str, float]) -> list[Sample]:
    return [((name,), value) for name, value in figures.items()]


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1_000


FAMILIES: Final[tuple[Family, ...]] = (
    Family(name="slackwater_batches_total", help="Batches delivered.", samples=lambda live: [((), live.total.batches)]),
    Family(
        name="slackwater_batch_seconds",
        help="How long the last batch took, by phase: front, keyed, sinks, clock, and total for all of it.",
        labels=("phase",),
        samples=lambda live: _labelled({**live.last.phases_s, "total": live.last.seconds}),
    ),
    Family(
        name="slackwater_spark_seconds",
        help="How long each part of the batch before the last one took, as reported by Spark.",
        labels=("part",),
        samples=lambda live: _labelled(live.last.spark_s),
    ),
    Family(
        name="slackwater_rows_total",
        help="Rows read.",
        labels=("stream",),
        samples=_stream_totals(lambda each: each.rows),
    ),
    Family(
        name="slackwater_rows_out_total",
        help="Rows delivered.",
        labels=("output",),
        samples=lambda live: [((name,), each.rows) for name, each in live.total.outputs.items()],
    ),
    Family(
        name="slackwater_late_rows_total",
        help="Rows that arrived after their windows were forgotten, and went to the late output.",
        labels=("step",),
        samples=_step_totals("late"),
    ),
    Family(
        name="slackwater_refired_rows_total",
        help="Rows that arrived after their window was complete, within the allowed lateness, and corrected it.",
        labels=("step",),
        samples=_step_totals("refired"),
    ),
    Family(
        name="slackwater_ignored_rows_total",
        help="Rows for windows that their trigger had finished; they changed nothing.",
        labels=("step",),
        samples=_step_totals("ignored"),
    ),
    Family(
        name="slackwater_filtered_rows_total",
        help="Rows that `where`, `map` or a join with a table removed from a stream or from a step's results.",
        labels=("stream",),
        samples=_filtered,
    ),
    Family(
        name="slackwater_dead_letters_total",
        help="Dead letters by reason, from a stream or from a step's results.",
        labels=("stream", "reason"),
        samples=lambda live: list(live.total.dead.items()),
    ),
    Family(
        name="slackwater_watermark_timestamp_seconds",
        help="The watermark.",
        labels=("stream",),
        samples=_streams(lambda each: _seconds(each.watermark_ms)),
    ),
    Family(
        name="slackwater_watermark_lag_seconds",
        help="How far the watermark was behind the processing time of the last batch.",
        labels=("stream",),
        samples=_watermark_lags,
    ),
    Family(
        name="slackwater_partition_watermark_lag_seconds",
        help="How far the watermark would be behind if it followed this partition alone.",
        labels=("stream", "partition"),
        samples=_partition_lags,
    ),
    Family(
        name="slackwater_partition_idle",
        help="1 if a partition is idle, so that it does not hold back the watermark.",
        labels=("stream", "partition"),
        samples=_partitions(lambda part: float(part.is_idle)),
    ),
    Family(
        name="slackwater_stream_set_aside",
        help="1 if a stream is idle, or read to the end of a bounded run, so that no step over several waits for it.",
        labels=("stream",),
        samples=_streams(lambda each: float(bool(each.aside))),
    ),
    Family(
        name="slackwater_partition_holds_watermark",
        help="1 for the partition that determines the watermark.",
        labels=("stream", "partition"),
        samples=_holders,
    ),
    Family(
        name="slackwater_watermark_held_since_timestamp_seconds",
        help="When the partition that determines the watermark began to do so.",
        labels=("stream",),
        samples=_streams(lambda each: _seconds(each.held_since_ms)),
    ),
    Family(
        name="slackwater_consumer_lag_records",
        help="Records of a Kafka partition that no batch has read yet.",
        labels=("stream", "partition"),
        samples=_partitions(lambda part: part.lag),
    ),
    Family(
        name="slackwater_consumer_lag_growth",
        help="How fast the lag of a Kafka partition grows, in records per second.",
        labels=("stream", "partition"),
        samples=_partitions(lambda part: part.lag_per_s),
    ),
    Family(
        name="slackwater_latency_seconds",
        help="How long rows of the last batch took from their event or ingestion time to their delivery.",
        labels=("output", "quantile", "since"),
        samples=_latencies,
    ),
    Family(
        name="slackwater_state_bytes",
        help="The size of a step's state.",
        labels=("step",),
        samples=_steps(lambda each: each.state_bytes),
    ),
    Family(
        name="slackwater_state_rows",
        help="The rows of a step's state.",
        labels=("step",),
        samples=_steps(lambda each: each.state_rows),
    ),
    Family(
        name="slackwater_state_keys_estimate",
        help="About how many keys a step's state has: an estimate, from one key group in each batch.",
        labels=("step",),
        samples=_steps(lambda each: each.state_keys),
    ),
    Family(
        name="slackwater_state_open_rows",
        help="The rows of a step's state that the watermark has not passed: open windows, and what waits for its time.",
        labels=("step",),
        samples=_steps(lambda each: each.open_rows),
    ),
    Family(
        name="slackwater_largest_key_share",
        help="The largest key's share of the rows of the last batch, in a step that takes whole rows.",
        labels=("step",),
        samples=_steps(lambda each: each.largest_share),
    ),
    Family(
        name="slackwater_sink_seconds",
        help="How long a sink took for the last batch, waits included.",
        labels=("sink",),
        samples=_sinks(lambda each: each.seconds),
    ),
    Family(
        name="slackwater_sink_retries_total",
        help="How often writing to a sink was retried.",
        labels=("sink",),
        samples=lambda live: [((name,), each.retries) for name, each in live.total.sinks.items()],
    ),
    Family(
        name="slackwater_sink_wait_seconds_total",
        help="How long batches waited for an unavailable sink.",
        labels=("sink",),
        samples=lambda live: [((name,), each.waited_s) for name, each in live.total.sinks.items()],
    ),
    Family(
        name="slackwater_starts_total",
        help="Starts of the job on this checkpoint.",
        samples=lambda live: [((), live.run.starts)],
    ),
    Family(
        name="slackwater_rows_ahead_of_clock_total",
        help="Rows with an event time after the processing time of their batch.",
        labels=("stream",),
        samples=_stream_totals(lambda each: each.ahead_of_clock),
    ),
    Family(
        name="slackwater_lateness_seconds",
        help="How far rows of the last batch were behind the newest row of their partition.",
        labels=("stream", "quantile"),
        samples=lambda live: _quantiles([((name,), each.lateness_s) for name, each in live.last.streams.items()]),
    ),
    Family(
        name="slackwater_out_of_orderness_seconds",
        help="How far the watermark trails the largest event time, as declared.",
        labels=("stream",),
        samples=_streams(lambda each: _seconds(each.out_of_orderness_ms)),
    ),
    Family(
        name="slackwater_stream_waits",
        help="1 if the next batch does not read a stream because it is too far ahead of another.",
        labels=("stream",),
        samples=_streams(lambda each: float(bool(each.waits_for))),
    ),
    Family(
        name="slackwater_lookup_seconds",
        help="How long requests of a lookup step took in the last batch.",
        labels=("step", "quantile"),
        samples=lambda live: _quantiles([((name,), each.request_s) for name, each in live.last.lookups.items()]),
    ),
    Family(
        name="slackwater_lookup_requests_total",
        help="Requests of a lookup step to its store.",
        labels=("step",),
        samples=lambda live: [((name,), each.requests) for name, each in live.total.lookups.items()],
    ),
    Family(
        name="slackwater_lookup_keys_total",
        help="Keys of a lookup step that its cache answered (hit), or that it asked the store for (miss).",
        labels=("step", "result"),
        samples=_lookup_keys,
    ),
    Family(
        name="slackwater_lookup_errors_total",
        help="Requests of a lookup step that failed.",
        labels=("step",),
        samples=lambda live: [((name,), each.errors) for name, each in live.total.lookups.items()],
    ),
    Family(
        name="slackwater_last_batch_timestamp_seconds",
        help="When the last batch was delivered.",
        samples=lambda live: [((), live.last.at_ms / 1_000)],
    ),
    Family(
        name="slackwater_export_failures_total",
        help="Exports to an OTLP endpoint that failed.",
        samples=lambda live: [((), live.export_failures)],
    ),
)
