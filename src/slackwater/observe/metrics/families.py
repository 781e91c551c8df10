"""The metrics of a job by name. Users build dashboards and alerts on these names, so they do not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.record import BatchRecord, PartitionRecord, Quantiles

_COUNTER: Final = "_total"

R = TypeVar("R")
Value = Callable[[R], float | None]
Sample = tuple[tuple[str, ...], float | None]
"""The values of a family's labels, and the figure; None means no sample."""


@dataclass(frozen=True)
class Family:
    """One metric: its name as scraped, its labels apart from the pipeline, and how to get its samples."""

    name: str
    help: str
    samples: Callable[[Live], Iterable[Sample]]
    labels: tuple[str, ...] = ()

    @property
    def is_counter(self) -> bool:
        """Whether the metric is a counter."""
        return self.name.endswith(_COUNTER)


def _job(name: str, help: str, value: Callable[[Live], float | None]) -> Family:  # noqa: A002  its field
    return Family(name, help, lambda live: [((), value(live))])


def _per(label: str, records: Callable[[BatchRecord], Mapping[str, R]]) -> Callable[[str, str, Value[R]], Family]:
    """Return what makes families with a figure for each of these records: those of the last batch, or counters."""

    def family(name: str, help: str, value: Value[R]) -> Family:  # noqa: A002  as above
        def samples(live: Live) -> Iterator[Sample]:
            for labelled, each in records(live.total if name.endswith(_COUNTER) else live.last).items():
                yield (labelled,), value(each)

        return Family(name, help, samples, (label,))

    return family


_stream: Final = _per("stream", lambda batch: batch.streams)
_step: Final = _per("step", lambda batch: batch.steps)
_output: Final = _per("output", lambda batch: batch.outputs)
_sink: Final = _per("sink", lambda batch: batch.sinks)
_lookup: Final = _per("step", lambda batch: batch.lookups)


def _partition(name: str, help: str, value: Value[PartitionRecord]) -> Family:  # noqa: A002  as above
    def samples(live: Live) -> Iterator[Sample]:
        for stream, each in live.last.streams.items():
            for number, part in each.partitions.items():
                yield (stream, number), value(part)

    return Family(name, help, samples, ("stream", "partition"))


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
    _job("slackwater_batches_total", "Batches delivered.", lambda live: live.total.batches),
    Family(
        "slackwater_batch_seconds",
        "How long the last batch took, by phase: front, keyed, sinks, clock, and total for all of it.",
        lambda live: _labelled({**live.last.phases_s, "total": live.last.seconds}),
        ("phase",),
    ),
    Family(
        "slackwater_spark_seconds",
        "How long each part of the batch before the last one took, as reported by Spark.",
        lambda live: _labelled(live.last.spark_s),
        ("part",),
    ),
    _stream("slackwater_rows_total", "Rows read.", lambda each: each.rows),
    _output("slackwater_rows_out_total", "Rows delivered.", lambda each: each.rows),
    _step(
        "slackwater_late_rows_total",
        "Rows that arrived after their windows were forgotten, and went to the late output.",
        lambda each: each.counts.get("late", 0),
    ),
    _step(
        "slackwater_refired_rows_total",
        "Rows that arrived after their window was complete, within the allowed lateness, and corrected it.",
        lambda each: each.counts.get("refired", 0),
    ),
    _step(
        "slackwater_ignored_rows_total",
        "Rows for windows that their trigger had finished; they changed nothing.",
        lambda each: each.counts.get("ignored", 0),
    ),
    Family(
        "slackwater_filtered_rows_total",
        "Rows that `where`, `map` or a join with a table removed from a stream or from a step's results.",
        _filtered,
        ("stream",),
    ),
    Family(
        "slackwater_dead_letters_total",
        "Dead letters by reason, from a stream or from a step's results.",
        lambda live: list(live.total.dead.items()),
        ("stream", "reason"),
    ),
    _stream("slackwater_watermark_timestamp_seconds", "The watermark.", lambda each: _seconds(each.watermark_ms)),
    Family(
        "slackwater_watermark_lag_seconds",
        "How far the watermark was behind the processing time of the last batch.",
        _watermark_lags,
        ("stream",),
    ),
    Family(
        "slackwater_partition_watermark_lag_seconds",
        "How far the watermark would be behind if it followed this partition alone.",
        _partition_lags,
        ("stream", "partition"),
    ),
    _partition(
        "slackwater_partition_idle",
        "1 if a partition is idle, so that it does not hold back the watermark.",
        lambda each: float(each.is_idle),
    ),
    _stream(
        "slackwater_stream_set_aside",
        "1 if a stream is idle, or read to the end of a bounded run, so that no step over several waits for it.",
        lambda each: float(bool(each.aside)),
    ),
    Family(
        "slackwater_partition_holds_watermark",
        "1 for the partition that determines the watermark.",
        _holders,
        ("stream", "partition"),
    ),
    _stream(
        "slackwater_watermark_held_since_timestamp_seconds",
        "When the partition that determines the watermark began to do so.",
        lambda each: _seconds(each.held_since_ms),
    ),
    _partition(
        "slackwater_consumer_lag_records",
        "Records of a Kafka partition that no batch has read yet.",
        lambda each: each.lag,
    ),
    _partition(
        "slackwater_consumer_lag_growth",
        "How fast the lag of a Kafka partition grows, in records per second.",
        lambda each: each.lag_per_s,
    ),
    Family(
        "slackwater_latency_seconds",
        "How long rows of the last batch took from their event or ingestion time to their delivery.",
        _latencies,
        ("output", "quantile", "since"),
    ),
    _step("slackwater_state_bytes", "The size of a step's state.", lambda each: each.state_bytes),
    _step("slackwater_state_rows", "The rows of a step's state.", lambda each: each.state_rows),
    _step(
        "slackwater_state_keys_estimate",
        "About how many keys a step's state has: an estimate, from one key group in each batch.",
        lambda each: each.state_keys,
    ),
    _step(
        "slackwater_state_open_rows",
        "The rows of a step's state that the watermark has not passed: open windows, and what waits for its time.",
        lambda each: each.open_rows,
    ),
    _step(
        "slackwater_largest_key_share",
        "The largest key's share of the rows of the last batch, in a step that takes whole rows.",
        lambda each: each.largest_share,
    ),
    _sink(
        "slackwater_sink_seconds", "How long a sink took for the last batch, waits included.", lambda each: each.seconds
    ),
    _sink("slackwater_sink_retries_total", "How often writing to a sink was retried.", lambda each: each.retries),
    _sink(
        "slackwater_sink_wait_seconds_total",
        "How long batches waited for an unavailable sink.",
        lambda each: each.waited_s,
    ),
    _job("slackwater_starts_total", "Starts of the job on this checkpoint.", lambda live: live.run.starts),
    _stream(
        "slackwater_rows_ahead_of_clock_total",
        "Rows with an event time after the processing time of their batch.",
        lambda each: each.ahead_of_clock,
    ),
    Family(
        "slackwater_lateness_seconds",
        "How far rows of the last batch were behind the newest row of their partition.",
        lambda live: _quantiles([((name,), each.lateness_s) for name, each in live.last.streams.items()]),
        ("stream", "quantile"),
    ),
    _stream(
        "slackwater_out_of_orderness_seconds",
        "How far the watermark trails the largest event time, as declared.",
        lambda each: _seconds(each.out_of_orderness_ms),
    ),
    _stream(
        "slackwater_stream_waits",
        "1 if the next batch does not read a stream because it is too far ahead of another.",
        lambda each: float(bool(each.waits_for)),
    ),
    Family(
        "slackwater_lookup_seconds",
        "How long requests of a lookup step took in the last batch.",
        lambda live: _quantiles([((name,), each.request_s) for name, each in live.last.lookups.items()]),
        ("step", "quantile"),
    ),
    _lookup("slackwater_lookup_requests_total", "Requests of a lookup step to its store.", lambda each: each.requests),
    Family(
        "slackwater_lookup_keys_total",
        "Keys of a lookup step that its cache answered (hit), or that it asked the store for (miss).",
        _lookup_keys,
        ("step", "result"),
    ),
    _lookup("slackwater_lookup_errors_total", "Requests of a lookup step that failed.", lambda each: each.errors),
    _job(
        "slackwater_last_batch_timestamp_seconds",
        "When the last batch was delivered.",
        lambda live: live.last.at_ms / 1_000,
    ),
    _job(
        "slackwater_export_failures_total",
        "Exports to an OTLP endpoint that failed.",
        lambda live: live.export_failures,
    ),
)
