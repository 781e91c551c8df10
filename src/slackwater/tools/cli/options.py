"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.base.folders import given_path


def at_home(path: Path | None) -> Path | None:
    """Return a path with `~` expanded; a shell does not expand the `~` in `--folder=~/data`."""
    return None if path is None else given_path(path)


PipelineFile = Annotated[Path, typer.Argument(callback=at_home, help="A Python file that defines a Pipeline.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port of the page; 0 for any free port.")]
Host = Annotated[
    str,
    typer.Option(
        help="Address to listen on; any other than loopback requires a token: a new one, or SLACKWATER_PAGE_TOKEN."
    ),
]
