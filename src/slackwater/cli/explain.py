"""`slackwater explain FILE`: the plan of a pipeline, before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.loading import load_pipeline
from slackwater.cli.paths import at_home


def explain(
    file: Annotated[Path, typer.Argument(callback=at_home, help="A Python file that defines a Pipeline.")],
) -> None:
    """Print the plan as a graph: sources, steps with their stable names, watermarks, outputs, sinks, delivery."""
    typer.echo(load_pipeline(file).explain(), nl=False)
