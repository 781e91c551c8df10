"""`slackwater monitor generate`: alert rules for Prometheus, and a dashboard for Grafana."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.base.durations import duration_ms
from slackwater.base.errors import cause_of, fault
from slackwater.base.names import checked_name
from slackwater.observe.monitoring.dashboard import DASHBOARD, dashboard_file
from slackwater.observe.monitoring.rules_file import RULES, rules_file
from slackwater.observe.monitoring.thresholds import Thresholds
from slackwater.tools.cli.options import at_home

monitor = typer.Typer(help="Alert rules for Prometheus, and a dashboard for Grafana.", no_args_is_help=True)


@monitor.callback()
def _group() -> None:
    """Keep `generate` a separate command, although it is the only one."""


@monitor.command()
def generate(
    *,
    out: Annotated[Path, typer.Option(callback=at_home, help="Folder for the two files; created if missing.")],
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this pipeline; also alert when it is gone.")
    ] = None,
    checkpoints: Annotated[
        str, typer.Option(metavar="DIR", help="Folder that holds the checkpoints, for the commands in the alerts.")
    ] = ".slackwater",
    stalled_after: Annotated[
        str, typer.Option(help="Alert when rows arrive but the watermark has stalled for this long.")
    ] = "10m",
    batch_within: Annotated[str, typer.Option(help="Alert when no batch has been delivered for this long.")] = "10m",
    slow_sink: Annotated[str, typer.Option(help="Alert when a sink takes longer than this for a batch.")] = "30s",
    state_growth: Annotated[
        float, typer.Option(min=0, help="Alert when state grows steadily, by more than this share …")
    ] = 0.2,
    state_over: Annotated[str, typer.Option(help="… within this time; set it above the longest window.")] = "6h",
    state_mb: Annotated[float, typer.Option(min=0, help="Ignore the growth of state below this size, in MB.")] = 100,
    ahead: Annotated[
        str, typer.Option(help="Alert when event times are further ahead of the clock than this.")
    ] = "10s",
    dead_share: Annotated[
        float, typer.Option(min=0, max=1, help="Alert when a larger share of the rows are dead letters.")
    ] = 0.01,
    restarts: Annotated[int, typer.Option(min=1, help="Alert when the job restarts this many times …")] = 3,
    restarts_within: Annotated[str, typer.Option(help="… within this time.")] = "30m",
) -> None:
    """Write slackwater.rules.yml and slackwater.dashboard.json; existing files are replaced.

    The rules alert on seven incidents: a stalled watermark, a slow sink, state that leaks, a clock that runs ahead, a
    burst of dead letters, a crash loop, and an out-of-orderness below the measured lateness; and on a job that hangs or
    is gone. Each alert states what is happening and which command to run.

    [dim]Examples:[/dim]

      slackwater monitor generate --out monitoring

      slackwater monitor generate --out monitoring --pipeline orders --checkpoints /jobs --slow-sink 5s
    """
    if pipeline is not None:
        checked_name(pipeline, "--pipeline")
    limits = Thresholds(
        stalled_after_ms=duration_ms(stalled_after, what="`--stalled-after`", least_ms=1_000),
        batch_within_ms=duration_ms(batch_within, what="`--batch-within`", least_ms=1_000),
        slow_sink_ms=duration_ms(slow_sink, what="`--slow-sink`"),
        state_growth=state_growth,
        state_over_ms=duration_ms(state_over, what="`--state-over`", least_ms=60_000),
        state_bytes=round(state_mb * 1_000_000),
        ahead_ms=duration_ms(ahead, what="`--ahead`"),
        dead_share=dead_share,
        restarts=restarts,
        restarts_within_ms=duration_ms(restarts_within, what="`--restarts-within`", least_ms=1_000),
    )
    files = {
        RULES: rules_file(pipeline=pipeline, checkpoints=checkpoints.rstrip("/"), limits=limits),
        DASHBOARD: dashboard_file(pipeline=pipeline),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise fault("MONITOR_OUT", path=out, cause=cause_of(error)) from error
    typer.echo(f"wrote {out / RULES}: list it under rule_files in prometheus.yml")
    typer.echo(f"wrote {out / DASHBOARD}: import it in Grafana (Dashboards, New, Import)")
