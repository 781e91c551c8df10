"""`slackwater run FILE`: run a pipeline on Spark."""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.base.errors import SlackwaterWarning, fault
from slackwater.observe.checker import check_plan
from slackwater.observe.metrics.prometheus import LOCAL
from slackwater.plan.plan import Plan
from slackwater.tools.cli.loading import load_pipeline
from slackwater.tools.cli.options import PipelineFile, Port, at_home
from slackwater.tools.cli.phases import Phases
from slackwater.tools.cli.progress import ProgressLines

if TYPE_CHECKING:
    from slackwater.observe.metrics.report import BatchReport


def run(
    file: PipelineFile,
    *,
    bounded: Annotated[
        bool,
        typer.Option(
            "--bounded", help="Process the available data, fire every window, and exit; this finishes the checkpoint."
        ),
    ] = False,
    master: Annotated[
        str | None, typer.Option(help="Spark master, such as spark://host:7077; all local cores by default.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            callback=at_home,
            help="Folder for progress and state; .slackwater/<pipeline> by default. Reuse it to resume.",
        ),
    ] = None,
    trigger: Annotated[str, typer.Option(help="Interval between batches; 0s for as fast as possible.")] = "1s",
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Write to sinks that hold rows of another run, or whose marks are missing."),
    ] = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Finish a started batch with changed code or changed files.")
    ] = False,
    fail_if_dead: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Exit with code 1 if a larger share of a stream's records are dead letters.",
        ),
    ] = None,
    skip_rows: Annotated[
        list[str] | None,
        typer.Option(
            "--skip-rows",
            metavar="STREAM/PARTITION:FIRST-LAST",
            help="Send these rows to the dead letters unread: the way out when a batch fails on every attempt. "
            "Repeat it for more; offsets as dead letters and status show them.",
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Show the job live in a browser, and print the address.")
    ] = False,
    port: Port = 0,
    host: Annotated[
        str,
        typer.Option(
            help="Address that the page listens on; any other than loopback requires a token: a new one, or "
            "SLACKWATER_PAGE_TOKEN."
        ),
    ] = "127.0.0.1",
    show_data: Annotated[
        bool,
        typer.Option("--show-data", help="Keep the contents of late rows and dead letters, and show them on the page."),
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics."),
    ] = None,
    metrics_host: Annotated[
        str | None, typer.Option(help="Serve metrics on this address instead, such as 0.0.0.0 for all interfaces.")
    ] = None,
    metrics_file: Annotated[
        Path | None, typer.Option(callback=at_home, help="Append the figures of each batch to this file, as JSON.")
    ] = None,
    otlp: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Export metrics over OTLP to this endpoint, such as http://host:4318; OTEL_EXPORTER_OTLP_ENDPOINT by "
            "default.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress lines.")] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Print how long each phase of the startup took, and a progress line per batch even when idle.",
        ),
    ] = False,
) -> None:
    """Run a pipeline until Ctrl-C or SIGTERM (a clean stop), or to the end of its input with --bounded.

    Restart with the same checkpoint to resume: no row is lost or duplicated. The errors and warnings of
    `slackwater check` are printed before Spark starts, one line each.

    [dim]Examples:[/dim]

      slackwater run orders.py

      slackwater run orders.py --bounded --checkpoint /tmp/try

      slackwater run orders.py --bounded --fail-if-dead 0.5

      slackwater run orders.py --skip-rows orders/0:1200-1300

      slackwater run orders.py --page

      slackwater run orders.py --metrics-port 9108

      slackwater run orders.py --otlp http://localhost:4318

      slackwater run orders.py --master spark://host:7077 --trigger 5s
    """
    progress = ProgressLines(quiet=quiet, verbose=verbose)
    phases = Phases(progress=progress, verbose=verbose)
    atexit.register(phases.end)
    phases.begin("reading the pipeline")
    pipeline = load_pipeline(file)
    plan = pipeline.plan()
    if metrics_host is not None and metrics_port is None:
        raise fault("METRICS_HOST")
    from slackwater.spark.options import RunOptions  # noqa: PLC0415  `--help` should not wait for it
    from slackwater.spark.start import run_pipeline  # noqa: PLC0415  as above

    def start() -> None:
        _say_findings(plan, pipeline.accept)
        progress.begin(pipeline.name)

    def on_batch(report: BatchReport) -> None:
        phases.started()
        progress.batch(report)

    def on_phase(name: str) -> None:
        phases.begin(name)
        takers.on_phase(name)

    options = RunOptions(
        bounded=bounded,
        master=master,
        checkpoint=checkpoint,
        trigger=trigger,
        accept_changes=accept_changes,
        take_over=take_over,
        page=page and (port or True),
        show_data=show_data,
        skip_rows=skip_rows or (),
        metrics_port=metrics_port,
        metrics_file=metrics_file,
        otlp=otlp,
        on_batch=on_batch,
    )
    with (
        phases.of(pipeline.name),
        options.recording(
            plan, page_host=host, metrics_host=metrics_host or LOCAL, environ=os.environ, say=progress.note
        ) as takers,
    ):
        job = run_pipeline(
            plan, options, on_start=start, on_record=takers.on_record, on_run=takers.on_run, on_phase=on_phase
        )
        takers.end(is_finished=job.is_finished)
        phases.begin("shutting down")
    progress.end(plan.outputs, finished=job.is_finished, owed=job.owed)
    if fail_if_dead is not None:
        job.dead_letters.check(fail_if_dead)


def _say_findings(plan: Plan, accept: Mapping[str, str]) -> None:
    """Print the checker's findings in the definition, one line each; only `slackwater check` shows notes."""
    for finding in check_plan(plan, accept=accept).open:
        if finding.severity != "note":
            warnings.warn(finding.line, SlackwaterWarning, stacklevel=2)
