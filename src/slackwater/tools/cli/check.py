"""`slackwater check FILE`: what will go wrong when a pipeline runs, found in its definition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from slackwater.base.errors import counted, fault, listed, near_miss
from slackwater.base.folders import local_folder
from slackwater.connectors.log.source import LogSource
from slackwater.observe.checker import Facts, master_cores
from slackwater.observe.checker.facts import ENOUGH_ROWS
from slackwater.plan.plan import Plan, SourcePlan
from slackwater.tools.cli.lateness import ReadingProgress
from slackwater.tools.cli.loading import load_pipeline
from slackwater.tools.cli.options import PipelineFile, at_home
from slackwater.tools.lateness import make_report, measure_source
from slackwater.tools.lateness.report import StreamReport


def check(
    file: PipelineFile,
    *,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print the findings.")] = "text",
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STREAM=]DIR", help="Measure the lateness of a stream in this log instead of its source."
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the lateness of the pipeline's own log sources.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(callback=at_home, help="Checkpoint of the job; .slackwater/<pipeline> by default."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master that the pipeline will run on; all local cores by default.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also exit with code 1 on warnings and notes.")] = False,
) -> None:
    """Find what will go wrong in production: unbounded state, blocking calls, dropped rows, and more.

    Each finding has a code, what was found, why it matters and what to do. The exit code is 1 if there is an
    error. If a finding is intended, accept it in the definition, with a reason:
    sw.Pipeline(..., accept={"SW402": "late clicks do not matter"}). The command starts nothing and writes nothing.

    [dim]Examples:[/dim]

      slackwater check orders.py

      slackwater check orders.py --strict --format json

      slackwater check orders.py --measure

      slackwater check orders.py --log orders=/data/yesterday/orders
    """
    pipeline = load_pipeline(file)
    p99_ms = _measured(pipeline.plan(), log or [], measure=measure)
    found = pipeline.check(checkpoint=checkpoint, facts=Facts(cores=master_cores(master), p99_ms=p99_ms))
    typer.echo(found.to_json() if form == "json" else str(found))
    if found.fails(strict=strict):
        raise typer.Exit(code=1)


def _measured(plan: Plan, logs: list[str], *, measure: bool) -> dict[str, int]:
    """Return the p99 of the lateness of each stream that should be measured."""
    timed = {source.name: source for source in plan.sources if source.time is not None}
    chosen: dict[str, SourcePlan] = {}
    if measure:
        chosen = {name: each for name, each in timed.items() if each.source.folder is not None}
    for given in logs:
        name, _, folder = given.rpartition("=")
        if not name and len(timed) == 1:
            name = next(iter(timed))
        if name not in timed:
            hint = near_miss(name, timed) if name else ""
            raise fault("CHECK_LOG", got=given, hint=hint, known=listed(timed, near=name))
        chosen[name] = _in_log(timed[name], folder)
    if not chosen:
        return {}
    progress = ReadingProgress()
    report = make_report([measure_source(each, watch=progress.watched) for each in chosen.values()])
    progress.end()
    for few in (stream for stream in report.streams if stream.events < ENOUGH_ROWS):
        typer.echo(f"stream `{few.name}`: {_too_few(few)}", err=True)
    return {stream.name: stream.quantiles_ms["p99"] for stream in report.streams if stream.events >= ENOUGH_ROWS}


def _too_few(stream: StreamReport) -> str:
    """Say why the lateness of a stream is not used."""
    text = f"lateness needs {ENOUGH_ROWS:,} events, there are {stream.events:,}; it is not compared"
    lost = ", ".join(f"{number:,} {reason}" for reason, number in stream.left_out.items())
    return f"{text}; dead letters among {counted(stream.records, 'record')}: {lost}" if lost else text


def _in_log(source: SourcePlan, folder: str) -> SourcePlan:
    """Return a stream as it would be if its source were the log in `folder`."""
    path = local_folder(folder, what="a log")
    if isinstance(source.source, LogSource):
        return replace(source, source=replace(source.source, path=path))
    return replace(source, source=LogSource(path=path, format="json", typed=None, max_bytes_per_batch=1 << 28))
