"""The panels of the dashboard, in the order of the questions of a person on call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from slackwater.observe.metrics.exposed import INFO
from slackwater.observe.monitoring.selectors import TARGET, Selectors

Kind = Literal["stat", "timeseries"]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel: its question, and what it plots."""

    title: str
    help: str
    """What the figure means, and what to do when it moves."""
    lines: tuple[tuple[str, str], ...]
    """The expressions with their legends."""
    unit: str
    kind: Kind
    least: float | None
    """The minimum of the axis."""


_M: Final = Selectors(pipeline='pipeline=~"$pipeline"')
_HOLDS: Final = f"{_M('slackwater_partition_holds_watermark')} == 1"
_STARTS: Final = f"{_M('slackwater_starts_total')}[1h]"


def _rate(name: str, *matchers: str) -> str:
    return f"rate({_M(name, *matchers)}[$__rate_interval])"


def _stat(title: str, help: str, *lines: tuple[str, str], unit: str = "short") -> Panel:  # noqa: A002  its field
    return Panel(title=title, help=help, lines=lines, unit=unit, kind="stat", least=None)


def _plot(  # a rate, a share or a size has no room below 0; a delay may
    title: str,
    help: str,  # noqa: A002  as above
    *lines: tuple[str, str],
    unit: str = "short",
    least: float | None = 0,
) -> Panel:
    return Panel(title=title, help=help, lines=lines, unit=unit, kind="timeseries", least=least)


ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Is it running?": (
        _stat("Version", "One series for each job that serves metrics.", (_M(INFO), "{{pipeline}} {{version}}")),
        _stat(
            "Since the last batch",
            "More than a few trigger intervals: the job hangs, or waits for a sink.",
            (f"time() - {_M('slackwater_last_batch_timestamp_seconds')}", "{{pipeline}}"),
            unit="s",
        ),
        _stat(
            "Starts in the last hour",
            "More than one: something restarts the job; read its log.",
            (f"max_over_time({_STARTS}) - min_over_time({_STARTS})", "{{pipeline}}"),
        ),
        _plot(
            "Batch time, by phase",
            "Above the trigger, the job falls behind. front: add cores; keyed: see state; sinks: check the store.",
            (_M("slackwater_batch_seconds"), "{{pipeline}} {{phase}}"),
            unit="s",
        ),
        _plot("Batches per minute", "", (f"60 * {_rate('slackwater_batches_total')}", "{{pipeline}}")),
        _plot(
            "Spark's share of a batch",
            "walCommit and commitOffsets are the checkpoint's disk; latestOffset is the source.",
            (_M("slackwater_spark_seconds"), "{{pipeline}} {{part}}"),
            unit="s",
        ),
    ),
    "Is it on time?": (
        _plot(
            "Latency, event to delivery (p99)",
            "If only event grows, events arrive late. If both grow, the job is behind.",
            (_M("slackwater_latency_seconds", 'quantile="0.99"', 'since="event"'), "{{output}} event"),
            (_M("slackwater_latency_seconds", 'quantile="0.99"', 'since="ingestion"'), "{{output}} ingestion"),
            unit="s",
            least=None,
        ),
        _plot(
            "Watermark behind the clock",
            "A steady value is the out-of-orderness plus the delay of events. If it grows, see who holds it.",
            (_M("slackwater_watermark_lag_seconds"), "{{stream}}"),
            unit="s",
            least=None,
        ),
        _plot(
            "Who holds the watermark",
            "The slowest partition. If the same one holds for long, its producer is slow or gone: set idle_after.",
            (f"{_M('slackwater_partition_watermark_lag_seconds')} and {_HOLDS}", "{{stream}} {{partition}}"),
            unit="s",
            least=None,
        ),
        _plot(
            "How long the same partition has held it",
            "If this is long and the lag grows too, that partition is stuck.",
            (f"time() - {_M('slackwater_watermark_held_since_timestamp_seconds')}", "{{stream}}"),
            unit="s",
        ),
        _plot(
            "Idle partitions, streams set aside, waiting streams",
            "Idle when it should send: check the producer. Waiting for long: the other stream is stuck.",
            (f"sum by ({TARGET}, stream) ({_M('slackwater_partition_idle')})", "{{stream}} idle"),
            (_M("slackwater_stream_set_aside"), "{{stream}} set aside"),
            (_M("slackwater_stream_waits"), "{{stream}} waits"),
        ),
        _plot(
            "Records waiting in Kafka",
            "The largest partition, not the sum: a sum hides one that is stuck.",
            (f"max by ({TARGET}, stream) ({_M('slackwater_consumer_lag_records')})", "{{stream}}"),
        ),
        _plot(
            "Growth of waiting records, per second",
            "Above 0 for long: the job is too slow.",
            (f"max by ({TARGET}, stream) ({_M('slackwater_consumer_lag_growth')})", "{{stream}}"),
            least=None,
        ),
    ),
    "Are the rows good?": (
        _plot(
            "Rows per second",
            "",
            (_rate("slackwater_rows_total"), "{{stream}} in"),
            (_rate("slackwater_rows_out_total"), "{{output}} out"),
            (_rate("slackwater_filtered_rows_total"), "{{stream}} filtered"),
        ),
        _plot(
            "Dead letters per second, by reason",
            "`slackwater dead-letters` shows, repairs and retries them.",
            (_rate("slackwater_dead_letters_total"), "{{stream}} {{reason}}"),
        ),
        _plot(
            "Late and correcting rows per second",
            "Late rows went to the late output; correcting rows made a complete window fire again.",
            (_rate("slackwater_late_rows_total"), "{{step}} late"),
            (_rate("slackwater_refired_rows_total"), "{{step}} correcting"),
            (_rate("slackwater_ignored_rows_total"), "{{step}} ignored"),
        ),
        _plot(
            "Lateness (p99) and allowance",
            "Above the allowance, `slackwater lateness` shows what each setting costs.",
            (_M("slackwater_lateness_seconds", 'quantile="0.99"'), "{{stream}} p99"),
            (_M("slackwater_out_of_orderness_seconds"), "{{stream}} allowed"),
            unit="s",
        ),
        _plot(
            "Rows ahead of the clock, per second",
            "A producer's clock is fast; max_ahead keeps it from making others late.",
            (_rate("slackwater_rows_ahead_of_clock_total"), "{{stream}}"),
        ),
        _plot(
            "Lookups per second",
            "Few hits: cache for longer. Errors: check the store.",
            (_rate("slackwater_lookup_keys_total"), "{{step}} {{result}}"),
            (_rate("slackwater_lookup_requests_total"), "{{step}} requests"),
            (_rate("slackwater_lookup_errors_total"), "{{step}} errors"),
        ),
    ),
    "Does it fit?": (
        _plot(
            "State",
            "Steady growth: keys that never expire, or too long a lateness. `slackwater state` names the keys.",
            (_M("slackwater_state_bytes"), "{{step}}"),
            unit="bytes",
        ),
        _plot(
            "State rows",
            "Open rows belong to windows that are not complete, or wait for their time.",
            (_M("slackwater_state_rows"), "{{step}}"),
            (_M("slackwater_state_open_rows"), "{{step}} open"),
        ),
        _plot(
            "Keys in state (estimate)",
            "If it only grows, keys never expire. If rows grow and keys do not, each key holds more.",
            (_M("slackwater_state_keys_estimate"), "{{step}}"),
        ),
        _plot(
            "Share of the largest key",
            "Above a fifth, one task does most of the work: key by more columns.",
            (_M("slackwater_largest_key_share"), "{{step}}"),
            unit="percentunit",
        ),
        _plot(
            "Time per sink",
            "Includes waits. If slow, check the store.",
            (_M("slackwater_sink_seconds"), "{{sink}}"),
            unit="s",
        ),
        _plot(
            "Sink retries and seconds waited, per minute",
            "The store is unavailable or overloaded. The batch waits; nothing is lost.",
            (f"60 * {_rate('slackwater_sink_retries_total')}", "{{sink}} retries"),
            (f"60 * {_rate('slackwater_sink_wait_seconds_total')}", "{{sink}} waited"),
        ),
        _plot(
            "Lookup time (p99)",
            "If slow, check the store, or cache for longer.",
            (_M("slackwater_lookup_seconds", 'quantile="0.99"'), "{{step}}"),
            unit="s",
        ),
        _plot(
            "Failed OTLP exports per minute",
            "Only with --otlp. The job does not wait for them.",
            (f"60 * {_rate('slackwater_export_failures_total')}", "{{pipeline}}"),
        ),
    ),
}
