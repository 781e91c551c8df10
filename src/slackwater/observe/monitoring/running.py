"""The alerts for a job that does nothing at all: it hangs, or it is gone."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.base.durations import render_ms
from slackwater.observe.metrics.exposed import INFO
from slackwater.observe.monitoring.alerts import Alert
from slackwater.observe.monitoring.selectors import Selectors
from slackwater.observe.monitoring.thresholds import MINUTE_MS, Thresholds


def is_it_running(metric: Selectors, limits: Thresholds, *, pipeline: str | None, status: str) -> Iterator[Alert]:
    """Yield the alerts; a missing job can only be detected for a named `pipeline`."""
    over = render_ms(limits.batch_within_ms)
    yield Alert(
        name="SlackwaterNoBatch",
        lines=(f"time() - {metric('slackwater_last_batch_timestamp_seconds')} > {limits.batch_within_ms / 1_000:g}",),
        severity="critical",
        summary="The job is running but has delivered no batch for {{ $value | humanizeDuration }}",
        description=(
            f"A batch takes longer than {over}. Most often, it is waiting for an unavailable sink or lookup, and "
            "continues by itself once that is back. Nothing is lost."
        ),
        action=(
            f"Run `{status}`, and read the job's log: it names what the job is waiting for. If batches may take that "
            "long, regenerate the rules with a longer `--batch-within`."
        ),
    )
    if pipeline is not None:
        yield Alert(
            name="SlackwaterJobGone",
            lines=(f"absent({metric(INFO)})",),
            wait_ms=5 * MINUTE_MS,
            severity="critical",
            summary="The job is gone: nothing serves its metrics",
            description="It has ended, cannot be reached, or died and was not restarted. Nothing is lost.",
            action=f"Run `{status}` to see whether it was stopped, finished or died, and restart it.",
        )
