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
    unit: str = "short"
    kind: Kind = "timeseries"
    least: float | None = None
    """The minimum of the axis."""


_M: Final = Selectors(pipeline='pipeline=~"$pipeline"')
_HOLDS: Final = f"{_M('slackwater_partition_holds_watermark')} == 1"
_STARTS: Final = f"{_M('slackwater_starts_total')}[1h]"


def _rate(name: str, *matchers: str) -> str:
    return f"rate({_M(name, *matchers)}[$__rate_interval])"


ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Is it running?": (
        Panel(
            title="Version",
            help="One series for each job that serves metrics.",
            lines=((_M(INFO), "{{pipeline}} {{version}}"),),
            kind="stat",
        ),
        Panel(
            title="Since the last batch",
            help="More than a few trigger intervals: the job hangs, or waits for a sink.",
            lines=((f"time() - {_M('slackwater_last_batch_timestamp_seconds')}", "{{pipeline}}"),),
            unit="s",
            kind="stat",
        ),
        Panel(
            title="Starts in the last hour",
            help="More than one: something restarts the job; read its log.",
            lines=((f"max_over_time({_STARTS}) - min_over_time({_STARTS})", "{{pipeline}}"),),
            kind="stat",
        ),
        Panel(
            title="Batch time, by phase",
            help="Above the trigger, the job falls behind. front: add cores; keyed: see state; sinks: check the store.",
            lines=((_M("slackwater_batch_seconds"), "{{pipeline}} {{phase}}"),),
            unit="s",
            least=0,
        ),
        Panel(
            title="Batches per minute",
            help="",
            lines=((f"60 * {_rate('slackwater_batches_total')}", "{{pipeline}}"),),
            least=0,
        ),
        Panel(
            title="Spark's share of a batch",
            help="walCommit and commitOffsets are the checkpoint's disk; latestOffset is the source.",
            lines=((_M("slackwater_spark_seconds"), "{{pipeline}} {{part}}"),),
            unit="s",
            least=0,
        ),
    ),
    "Is it on time?": (
        Panel(
            title="Latency, event to delivery (p99)",
            help="If only event grows, events arrive late. If both grow, the job is behind.",
            lines=(
                (_M("slackwater_latency_seconds", 'quantile="0.99"', 'since="event"'), "{{output}} event"),
                (_M("slackwater_latency_seconds", 'quantile="0.99"', 'since="ingestion"'), "{{output}} ingestion"),
            ),
            unit="s",
        ),
        Panel(
            title="Watermark behind the clock",
            help="A steady value is the out-of-orderness plus the delay of events. If it grows, see who holds it.",
            lines=((_M("slackwater_watermark_lag_seconds"), "{{stream}}"),),
            unit="s",
        ),
        Panel(
            title="Who holds the watermark",
            help="The slowest partition. If the same one holds for long, its producer is slow or gone: set idle_after.",
            lines=((f"{_M('slackwater_partition_watermark_lag_seconds')} and {_HOLDS}", "{{stream}} {{partition}}"),),
            unit="s",
        ),
        Panel(
            title="How long the same partition has held it",
            help="If this is long and the lag grows too, that partition is stuck.",
            lines=((f"time() - {_M('slackwater_watermark_held_since_timestamp_seconds')}", "{{stream}}"),),
            unit="s",
            least=0,
        ),
        Panel(
            title="Idle partitions, streams set aside, waiting streams",
            help="Idle when it should send: check the producer. Waiting for long: the other stream is stuck.",
            lines=(
                (f"sum by ({TARGET}, stream) ({_M('slackwater_partition_idle')})", "{{stream}} idle"),
                (_M("slackwater_stream_set_aside"), "{{stream}} set aside"),
                (_M("slackwater_stream_waits"), "{{stream}} waits"),
            ),
            least=0,
        ),
        Panel(
            title="Records waiting in Kafka",
            help="The largest partition, not the sum: a sum hides one that is stuck.",
            lines=((f"max by ({TARGET}, stream) ({_M('slackwater_consumer_lag_records')})", "{{stream}}"),),
            least=0,
        ),
        Panel(
            title="Growth of waiting records, per second",
            help="Above 0 for long: the job is too slow.",
            lines=((f"max by ({TARGET}, stream) ({_M('slackwater_consumer_lag_growth')})", "{{stream}}"),),
        ),
    ),
    "Are the rows good?": (
        Panel(
            title="Rows per second",
            help="",
            lines=(
                (_rate("slackwater_rows_total"), "{{stream}} in"),
                (_rate("slackwater_rows_out_total"), "{{output}} out"),
                (_rate("slackwater_filtered_rows_total"), "{{stream}} filtered"),
            ),
            least=0,
        ),
        Panel(
            title="Dead letters per second, by reason",
            help="`slackwater dead-letters` shows, repairs and retries them.",
            lines=((_rate("slackwater_dead_letters_total"), "{{stream}} {{reason}}"),),
            least=0,
        ),
        Panel(
            title="Late and correcting rows per second",
            help="Late rows went to the late output; correcting rows made a complete window fire again.",
            lines=(
                (_rate("slackwater_late_rows_total"), "{{step}} late"),
                (_rate("slackwater_refired_rows_total"), "{{step}} correcting"),
                (_rate("slackwater_ignored_rows_total"), "{{step}} ignored"),
            ),
            least=0,
        ),
        Panel(
            title="Lateness (p99) and allowance",
            help="Above the allowance, `slackwater lateness` shows what each setting costs.",
            lines=(
                (_M("slackwater_lateness_seconds", 'quantile="0.99"'), "{{stream}} p99"),
                (_M("slackwater_out_of_orderness_seconds"), "{{stream}} allowed"),
            ),
            unit="s",
            least=0,
        ),
        Panel(
            title="Rows ahead of the clock, per second",
            help="A producer's clock is fast; max_ahead keeps it from making others late.",
            lines=((_rate("slackwater_rows_ahead_of_clock_total"), "{{stream}}"),),
            least=0,
        ),
        Panel(
            title="Lookups per second",
            help="Few hits: cache for longer. Errors: check the store.",
            lines=(
                (_rate("slackwater_lookup_keys_total"), "{{step}} {{result}}"),
                (_rate("slackwater_lookup_requests_total"), "{{step}} requests"),
                (_rate("slackwater_lookup_errors_total"), "{{step}} errors"),
            ),
            least=0,
        ),
    ),
    "Does it fit?": (
        Panel(
            title="State",
            help="Steady growth: keys that never expire, or too long a lateness. `slackwater state` names the keys.",
            lines=((_M("slackwater_state_bytes"), "{{step}}"),),
            unit="bytes",
            least=0,
        ),
        Panel(
            title="State rows",
            help="Open rows belong to windows that are not complete, or wait for their time.",
            lines=(
                (_M("slackwater_state_rows"), "{{step}}"),
                (_M("slackwater_state_open_rows"), "{{step}} open"),
            ),
            least=0,
        ),
        Panel(
            title="Keys in state (estimate)",
            help="If it only grows, keys never expire. If rows grow and keys do not, each key holds more.",
            lines=((_M("slackwater_state_keys_estimate"), "{{step}}"),),
            least=0,
        ),
        Panel(
            title="Share of the largest key",
            help="Above a fifth, one task does most of the work: key by more columns.",
            lines=((_M("slackwater_largest_key_share"), "{{step}}"),),
            unit="percentunit",
            least=0,
        ),
        Panel(
            title="Time per sink",
            help="Includes waits. If slow, check the store.",
            lines=((_M("slackwater_sink_seconds"), "{{sink}}"),),
            unit="s",
            least=0,
        ),
        Panel(
            title="Sink retries and seconds waited, per minute",
            help="The store is unavailable or overloaded. The batch waits; nothing is lost.",
            lines=(
                (f"60 * {_rate('slackwater_sink_retries_total')}", "{{sink}} retries"),
                (f"60 * {_rate('slackwater_sink_wait_seconds_total')}", "{{sink}} waited"),
            ),
            least=0,
        ),
        Panel(
            title="Lookup time (p99)",
            help="If slow, check the store, or cache for longer.",
            lines=((_M("slackwater_lookup_seconds", 'quantile="0.99"'), "{{step}}"),),
            unit="s",
            least=0,
        ),
        Panel(
            title="Failed OTLP exports per minute",
            help="Only with --otlp. The job does not wait for them.",
            lines=((f"60 * {_rate('slackwater_export_failures_total')}", "{{pipeline}}"),),
            least=0,
        ),
    ),
}
