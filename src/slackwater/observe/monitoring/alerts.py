"""The alerts: seven for incidents, and two for a job that does nothing at all.

An incident raises only its own alert, so the alerts refer to each other: a stalled watermark makes state grow, and a
clock that runs ahead makes the rows of all others late; only the cause is then reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from slackwater.base.durations import render_ms
from slackwater.observe.monitoring.selectors import TARGET, Selectors
from slackwater.observe.monitoring.thresholds import MINUTE_MS, Thresholds

Severity = Literal["critical", "warning"]
STALLED: Final = "SlackwaterWatermarkStalled"
AHEAD: Final = "SlackwaterClockAhead"
_STREAM: Final = f"{TARGET}, stream"
_BY_TARGET: Final = f"on ({TARGET})"
_BY_STREAM: Final = f"on ({_STREAM})"
_BURST_MS: Final = 10 * MINUTE_MS
_LATENESS_MS: Final = 30 * MINUTE_MS


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert: its condition, how long that must hold, and the text for the person on call."""

    name: str
    lines: tuple[str, ...]
    """The expression, line by line."""
    wait_ms: int = 0
    """How long the expression must be true before the alert fires."""
    severity: Severity
    summary: str
    description: str
    action: str
    """What to do, with the command to run."""

    @property
    def expression(self) -> str:
        """The condition in PromQL."""
        return "\n".join(self.lines)


def incidents(metric: Selectors, limits: Thresholds, *, status: str) -> Iterator[Alert]:
    """Yield the alerts of the seven incidents; `status` is the command that shows the job."""
    yield _stalled(metric, limits, status)
    yield _slow_sink(metric, limits, status)
    yield _leak(metric, limits, status)
    yield _ahead(metric, limits, status)
    yield _dead_letters(metric, limits, status)
    yield _crash_loop(metric, limits, status)
    yield _lateness(metric, status)


def _stalled(metric: Selectors, limits: Thresholds, status: str) -> Alert:
    watermark, rows = metric("slackwater_watermark_timestamp_seconds"), metric("slackwater_rows_total")
    behind, over = metric("slackwater_watermark_lag_seconds"), render_ms(limits.stalled_after_ms)
    return Alert(
        name=STALLED,
        lines=(
            f"{metric('slackwater_partition_holds_watermark')} == 1",
            f"and {_BY_STREAM} increase({rows}[{over}]) > 0",
            f"unless {_BY_STREAM} ({watermark} > {watermark} offset {over})",
            f"unless {_BY_STREAM} ({watermark} unless {watermark} offset {over})",
            f"unless {_BY_STREAM} ({behind} < {limits.stalled_after_ms / 1_000:g})",
        ),
        wait_ms=2 * MINUTE_MS,
        severity="critical",
        summary="The watermark of {{ $labels.stream }} has stalled: partition {{ $labels.partition }} holds it back",
        description=(
            f"Rows arrive, but the watermark has not moved for {over}, because partition {{{{ $labels.partition }}}} "
            "sends nothing newer. No window fires, and state grows. No row is lost."
        ),
        action=(
            f"Run `{status}` to see since when, and check the producer of that partition. If silence is normal, set "
            '`event_time(..., idle_after="5m")` and restart: an idle partition does not hold back the watermark.'
        ),
    )


def _slow_sink(metric: Selectors, limits: Thresholds, status: str) -> Alert:
    sink, batch = metric("slackwater_sink_seconds"), metric("slackwater_batch_seconds", 'phase="total"')
    growth = metric("slackwater_consumer_lag_growth")
    return Alert(
        name="SlackwaterSinkSlow",
        lines=(
            f"avg_over_time({sink}[5m]) > {limits.slow_sink_ms / 1_000:g}",
            "or (",
            f"  avg_over_time({sink}[10m]) > {_BY_TARGET} group_left () 0.5 * avg_over_time({batch}[10m])",
            f"  and {_BY_TARGET} max by ({TARGET}) (min_over_time({growth}[10m])) > 0",
            ")",
        ),
        wait_ms=5 * MINUTE_MS,
        severity="warning",
        summary="The sink {{ $labels.sink }} is slow: {{ $value | humanizeDuration }} per batch",
        description=(
            f"A batch spends more than {render_ms(limits.slow_sink_ms)} in this sink, or more than half of its time "
            "while records pile up in Kafka. The job falls behind and latency grows. No row is lost."
        ),
        action=(
            f"Run `{status}` for the time, waits and retries of each sink, and check the store: locks, load, disk, "
            "network. A longer `--trigger` writes fewer, larger batches."
        ),
    )


def _leak(metric: Selectors, limits: Thresholds, status: str) -> Alert:
    state, over_ms = metric("slackwater_state_bytes"), limits.state_over_ms
    # Compare the newest, the middle and the oldest sixth: state that fluctuates, or grows once, does not rise in all.
    part, middle, oldest = (render_ms(over_ms * twelfths // 12_000 * 1_000) for twelfths in (2, 5, 10))
    factor = f"{(1 + limits.state_growth) ** 0.5:.4g}"
    return Alert(
        name="SlackwaterStateGrows",
        lines=(
            f"{state} > {limits.state_bytes:g}",
            f"and min_over_time({state}[{part}]) > {factor} * max_over_time({state}[{part}] offset {middle})",
            f"and min_over_time({state}[{part}] offset {middle})",
            f"  > {factor} * max_over_time({state}[{part}] offset {oldest})",
            f"unless {_BY_TARGET} {_others(STALLED, part)}",
        ),
        wait_ms=5 * MINUTE_MS,
        severity="warning",
        summary="The state of {{ $labels.step }} keeps growing: {{ $value | humanize1024 }}B",
        description=(
            f"The step has grown steadily, by more than {100 * limits.state_growth:g} % in {render_ms(over_ms)}, and "
            "the watermark is not the reason. It keeps keys that never expire, or keeps them for too long."
        ),
        action=(
            f"Run `{status}` for the growth per hour, then "
            "`slackwater state PIPELINE.py --step {{ $labels.step }}`, which names the largest keys, and "
            "`slackwater check PIPELINE.py`, which finds unbounded state. Give the step a TTL, a window or a shorter "
            "lateness."
        ),
    )


def _ahead(metric: Selectors, limits: Thresholds, status: str) -> Alert:
    lag, slack = metric("slackwater_partition_watermark_lag_seconds"), metric("slackwater_out_of_orderness_seconds")
    dead = metric.grown("slackwater_dead_letters_total", _BURST_MS, 'reason="ahead_of_clock"')
    rows = metric.grown("slackwater_rows_total", _BURST_MS)
    return Alert(
        name=AHEAD,
        lines=(
            f"{slack} - {_BY_STREAM} group_right () {lag} > {limits.ahead_ms / 1_000:g}",
            "or (",
            f"  sum by ({_STREAM}) ({dead})",
            f"  / {_BY_STREAM} sum by ({_STREAM}) ({rows}) > {limits.dead_share:g}",
            ")",
        ),
        wait_ms=MINUTE_MS,
        severity="critical",
        summary="Events of {{ $labels.stream }} come from the future: a producer's clock runs ahead",
        description=(
            f"Event times are more than {render_ms(limits.ahead_ms)} ahead of the clock, or many rows are beyond "
            "`max_ahead` and become dead letters. Without `max_ahead`, they push the watermark ahead, and the rows of "
            "all other producers are late until the clock has caught up."
        ),
        action=(
            f"Run `{status}` for the number of rows ahead of the clock, correct the clock (NTP) of the producer"
            "{{ with $labels.partition }} of partition {{ . }}{{ end }}, and set "
            '`event_time(..., max_ahead="1m")`, so that one fast clock cannot make other rows late.'
        ),
    )


def _dead_letters(metric: Selectors, limits: Thresholds, status: str) -> Alert:
    dead = metric.grown("slackwater_dead_letters_total", _BURST_MS, 'reason!="ahead_of_clock"')
    rows = metric.grown("slackwater_rows_total", _BURST_MS)
    return Alert(
        name="SlackwaterDeadLetters",
        lines=(
            f"sum by ({_STREAM}) ({dead})",
            f"/ {_BY_STREAM} sum by ({_STREAM}) ({rows}) > {limits.dead_share:g}",
            "or (",
            f"  sum by ({_STREAM}) ({dead})",
            f"  / {_BY_TARGET} group_left () sum by ({TARGET}) ({rows}) > {limits.dead_share:g}",
            ")",
        ),
        severity="warning",
        summary="{{ $value | humanizePercentage }} of the rows of {{ $labels.stream }} are dead letters",
        description=(
            f"More than {100 * limits.dead_share:g} % of the rows of the last 10 minutes could not be processed. Most "
            "often, a producer has changed its format. The rows are kept, with their bytes and the reason, where the "
            "pipeline sends its dead letters."
        ),
        action=(
            f"Run `{status}` for the reasons, then `slackwater dead-letters stats WHERE --since 1h` and "
            "`slackwater dead-letters show WHERE ID` for one of them; WHERE is their folder or topic. "
            "Once the cause is fixed, `slackwater dead-letters retry WHERE --to TARGET` sends them again."
        ),
    )


def _crash_loop(metric: Selectors, limits: Thresholds, status: str) -> Alert:
    starts, over = metric("slackwater_starts_total"), render_ms(limits.restarts_within_ms)
    most = f"max by (pipeline, job) (last_over_time({starts}[{over}]"
    return Alert(
        name="SlackwaterCrashLoop",
        lines=(
            f"max_over_time({starts}[{over}]) - min_over_time({starts}[{over}]) >= {limits.restarts}",
            # Or on another host every time, where no target lasts; one that does is judged by itself.
            "or on (pipeline, job) (",
            f"  {most})) - {most} offset {over})) >= {limits.restarts}",
            f"  unless on (pipeline, job) ({starts} and {starts} offset {over})",
            ")",
        ),
        severity="critical",
        summary="The job restarted {{ $value }} times in " + over,
        description=(
            "Something ends the job, and something else restarts it. A failed batch is run again with the same rows, "
            "so it keeps failing until the cause is fixed. Nothing is lost, and nothing is delivered."
        ),
        action=(
            f"Run `{status}`, and read the end of the job's log: the last line is an error with a code, which "
            "docs/reference/errors explains. Fix the cause and restart; the job continues where it stopped."
        ),
    )


def _lateness(metric: Selectors, status: str) -> Alert:
    lateness = metric("slackwater_lateness_seconds", 'quantile="0.99"')
    over = render_ms(_LATENESS_MS)
    return Alert(
        name="SlackwaterLatenessAboveAllowance",
        lines=(
            f"quantile_over_time(0.5, {lateness}[{over}])",
            f"> {_BY_STREAM} {metric('slackwater_out_of_orderness_seconds')}",
            f"unless {_BY_STREAM} {_others(AHEAD, over)}",
        ),
        wait_ms=10 * MINUTE_MS,
        severity="warning",
        summary="Rows of {{ $labels.stream }} are later than its out-of-orderness allows for",
        description=(
            f"In most batches of the last {over}, one row in a hundred was {{{{ $value | humanizeDuration }}}} or more "
            "behind the newest of its partition, which is more than `out_of_orderness`. Such rows correct windows that "
            "were already complete, or go to the late output."
        ),
        action=(
            f"Run `{status}` for the lateness and the allowance, and `slackwater lateness PIPELINE.py` for what "
            "each setting costs. Raise `out_of_orderness`, or `allowed_lateness` if results should not wait."
        ),
    )


def _others(alert: str, over: str) -> str:
    """Return the expression for where another alert was recently pending or firing."""
    return f'max_over_time(ALERTS{{alertname="{alert}"}}[{over}])'
