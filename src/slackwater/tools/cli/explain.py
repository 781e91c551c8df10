"""`slackwater explain FILE`: the plan of a pipeline, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.base.errors import fault
from slackwater.tools.cli.loading import load_pipeline
from slackwater.tools.cli.options import PipelineFile, at_home


def explain(
    file: PipelineFile,
    *,
    svg: Annotated[
        Path | None, typer.Option(callback=at_home, help="Write the plan as SVG to this file, such as plan.svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Print the plan as a graph: sources, steps with their stable names, watermarks, outputs, sinks, delivery.

    [dim]Examples:[/dim]

      slackwater explain orders.py

      slackwater explain orders.py --svg plan.svg

      slackwater explain orders.py --json
    """
    pipeline = load_pipeline(file)
    if svg is not None:
        _write(svg, pipeline.svg())
        typer.echo(f"wrote the plan of {pipeline.name} to {svg}", err=True)
    if as_json or svg is None:
        typer.echo(pipeline.explain("json" if as_json else "text"), nl=as_json)


def _write(path: Path, drawing: str) -> None:
    if path.suffix.lower() != ".svg":
        raise fault("EXPLAIN_PICTURE", path=path, cause="its name does not end in .svg")
    try:
        path.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise fault("EXPLAIN_PICTURE", path=path, cause=error.strerror or error) from error
