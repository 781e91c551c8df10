"""`slackwater page`: the page of jobs from their checkpoints, in a browser or as one file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.paths import at_home
from slackwater.cli.status import job_folders
from slackwater.ground.stopping import stopped_by_signals


def page(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Python files that define a Pipeline.")
    ] = None,
    *,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(help="Checkpoint of a job; may be repeated. .slackwater/<pipeline> of each FILE by default."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=at_home, help="Write the page to this HTML file, which needs no server, and exit."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the page; 0 for any that is free.")] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than the loopback get a token.")
    ] = "127.0.0.1",
) -> None:
    """Show the page of jobs that have ended, as their checkpoints have it, until Ctrl-C.

    Without arguments, all jobs in ./.slackwater are on one page. The last hours are kept in the checkpoint, in full
    detail for the newest batches. For a running job,
    `slackwater run --page` follows it live.

    [dim]Examples:[/dim]

      slackwater page orders.py

      slackwater page --checkpoint .slackwater/orders --out post-mortem.html
    """
    from slackwater.page.export import one_file  # noqa: PLC0415  `--help` should not wait
    from slackwater.page.server import PageServer  # noqa: PLC0415  as above
    from slackwater.page.stored import stored_feed  # noqa: PLC0415  as above

    feeds = [stored_feed(folder) for folder in job_folders(files or [], checkpoint or [])]
    if out is not None:
        out.write_text(one_file(feeds[0]), encoding="utf-8")
        typer.echo(f"wrote {out}")
        return
    stopped = threading.Event()
    with PageServer(feeds, port=port, host=host) as server, stopped_by_signals(stopped.set):
        typer.echo(f"page: {server.address}  (Ctrl-C stops)")
        stopped.wait()
