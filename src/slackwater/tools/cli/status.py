"""`slackwater status`: whether jobs are running, how far they are, and what became of their rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console, ConsoleRenderable
from rich.live import Live
from rich.text import Text

from slackwater.base.errors import fault
from slackwater.base.folders import given_path
from slackwater.observe.metrics.remote_status import fetch_status, status_lines
from slackwater.observe.metrics.status import read_status
from slackwater.observe.metrics.status_text import print_status, together
from slackwater.tools.cli.loading import load_pipeline
from slackwater.tools.cli.options import at_home

_EVERY_S: Final = 2.0
_WIDTH: Final = 160
_HOME: Final = Path(".slackwater")

Files = Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="Python files that define a Pipeline.")]
Checkpoints = Annotated[
    list[Path] | None,
    typer.Option(help="Checkpoint of a job; repeatable. .slackwater/<pipeline> of each FILE by default."),
]


def status(
    files: Files = None,
    *,
    checkpoint: Checkpoints = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list with one object per job.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds until Ctrl-C.")] = False,
    url: Annotated[
        str | None, typer.Option(help="Ask the page of running jobs at this address, instead of reading checkpoints.")
    ] = None,
) -> None:
    """Show the state of jobs from their checkpoints: running, stopped, finished or dead, and since when.

    Also shows rows in and out, watermarks and what holds them back, lag, latency from event time to delivery, state
    and its growth, dead letters by reason, and sinks. Without arguments, all jobs in ./.slackwater.

    The jobs may be running, on this machine or another that shares the folder, or dead. The command takes no lock and
    writes nothing.

    [dim]Examples:[/dim]

      slackwater status

      slackwater status orders.py --watch

      slackwater status --checkpoint /jobs/orders --checkpoint /jobs/alerts --json

      slackwater status --url http://127.0.0.1:8080
    """
    if url is not None:
        _remote(url, as_json=as_json, watch=watch)
        return
    folders = job_folders(files or [], checkpoint or [])
    if as_json:
        typer.echo(json.dumps([read_status(folder).to_json() for folder in folders], indent=2, ensure_ascii=False))
    elif watch:
        _watch(lambda: together([read_status(folder) for folder in folders]))
    else:
        terminal = Console()
        console = terminal if terminal.is_terminal else Console(width=_WIDTH)
        print_status([read_status(folder) for folder in folders], console)


def job_folders(files: list[Path], checkpoints: list[Path]) -> list[Path]:
    """Return the checkpoints of the given jobs; without any, all in the default folder."""
    found = [given_path(_HOME / load_pipeline(_at_home(file)).name) for file in files]
    found += [_at_home(path) for path in checkpoints]
    if not found:
        manifests = sorted(_HOME.glob("*/slackwater/manifest.json"))
        found = [path.parents[1] for path in manifests]
    if not found:
        raise fault("STATUS_OF_NOTHING", path=_HOME.absolute())
    return [path.absolute() for path in found]


def _at_home(path: Path) -> Path:
    found = at_home(path)
    assert found is not None, "a path was given"
    return found


def _remote(url: str, *, as_json: bool, watch: bool) -> None:
    if as_json:
        typer.echo(json.dumps(fetch_status(url), indent=2, ensure_ascii=False))
    elif watch:
        _watch(lambda: Text(_remote_text(url)))
    else:
        typer.echo(_remote_text(url))


def _remote_text(url: str) -> str:
    return "\n".join(line for job in fetch_status(url) for line in status_lines(job))


def _watch(shown: Callable[[], ConsoleRenderable]) -> None:
    try:
        with Live(console=Console(), auto_refresh=False, vertical_overflow="visible") as live:
            while True:
                live.update(shown(), refresh=True)
                time.sleep(_EVERY_S)
    except KeyboardInterrupt:
        return
