"""`slackwater page`: the page of jobs from their checkpoints, in a browser or as a file."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Annotated

import typer

from slackwater.base.errors import cause_of, fault, listed
from slackwater.base.stopping import stopped_by_signals
from slackwater.observe.metrics.history import MetricsWarning
from slackwater.tools.cli.options import Host, Port, at_home
from slackwater.tools.cli.status import Checkpoints, Files, job_folders


def page(
    files: Files = None,
    *,
    checkpoint: Checkpoints = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=at_home, help="Write the page to this HTML file, which needs no server, and exit."),
    ] = None,
    port: Port = 0,
    host: Host = "127.0.0.1",
    show_data: Annotated[
        bool, typer.Option("--show-data", help="Show the contents of late rows and dead letters, if the run kept them.")
    ] = False,
) -> None:
    """Show jobs in a browser from their checkpoints, running or ended, until Ctrl-C.

    Without arguments, one page covers all jobs in ./.slackwater and lets you choose between them. The checkpoint keeps
    the last hours, with full detail for the newest batches. A running job is polled every two seconds;
    `slackwater run --page` follows it live.

    [dim]Examples:[/dim]

      slackwater page

      slackwater page orders.py

      slackwater page --checkpoint .slackwater/orders --out post-mortem.html
    """
    from slackwater.observe.page.export import one_file  # noqa: PLC0415  `--help` should not wait
    from slackwater.observe.page.server import PageServer  # noqa: PLC0415  as above
    from slackwater.observe.page.stored import Following, StoredJob  # noqa: PLC0415  as above

    jobs = [StoredJob(folder, show_data=show_data) for folder in job_folders(files or [], checkpoint or [])]
    feeds = [job.feed for job in jobs]
    for feed in feeds:
        if notice := feed.job["notice"]:
            warnings.warn(f"[HISTORY_UNREADABLE] {notice}", MetricsWarning, stacklevel=1)
    if out is not None:
        if len(feeds) > 1:
            raise fault("PAGE_OUT_ONE", count=len(feeds), known=listed(feed.name for feed in feeds))
        try:
            out.write_text(one_file(feeds[0]), encoding="utf-8")
        except OSError as error:
            raise fault("PAGE_OUT", path=out, cause=cause_of(error)) from error
        typer.echo(f"wrote {out}")
        return
    stopped = threading.Event()
    with PageServer(feeds, port=port, host=host) as server, Following(jobs), stopped_by_signals(stopped.set):
        typer.echo(f"page: {server.printed}  (Ctrl-C stops)")
        stopped.wait()
