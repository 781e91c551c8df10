"""`slackwater lateness`: how late events arrive, and which out-of-orderness to set."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer
from rich.console import Console

from slackwater.base.errors import counted, fault
from slackwater.base.secrets import shown_url
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.kafka.address import topic_at
from slackwater.tools.cli.loading import load_pipeline
from slackwater.tools.cli.options import at_home
from slackwater.tools.lateness import (
    DEFAULT_TARGET,
    StreamToRead,
    measure_log,
    measure_plan,
    measure_topic,
    print_report,
)
from slackwater.tools.lateness.picture import check_picture, write_picture


def lateness(
    file: Annotated[
        Path | None,
        typer.Argument(callback=at_home, help="Python file that defines a Pipeline; its sources are measured."),
    ] = None,
    *,
    log: Annotated[Path | None, typer.Option(callback=at_home, help="Measure this log, without a pipeline.")] = None,
    kafka: Annotated[
        str | None,
        typer.Option(metavar="SERVERS/TOPIC", help="Measure this topic of JSON records, without a pipeline."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Event time of the log or topic: a column or a SQL expression.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="Columns of the log, as Spark DDL; inferred from the first records by default.")
    ] = None,
    form: Annotated[
        Literal["json", "parquet", "avro"] | None,
        typer.Option("--format", help="Format of the log's files; inferred from their names by default."),
    ] = None,
    max_ahead: Annotated[
        str | None, typer.Option(help="Skip events that were further ahead than this on arrival.")
    ] = None,
    target: Annotated[
        float,
        typer.Option(help="Share of events that should arrive before the watermark; determines the recommendation."),
    ] = DEFAULT_TARGET,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Read only the newest records of each stream, evenly across partitions."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(callback=at_home, help="Write the curve as SVG to this file, such as lateness.svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress lines.")] = False,
) -> None:
    """Measure how late events arrive, and recommend an out-of-orderness.

    The lateness of an event is how far its time lies behind the newest earlier event in its partition.
    For each candidate out-of-orderness, the report shows how many events would fall behind the
    watermark; results are delayed by the same amount. The command writes nothing and does not
    affect a running job.

    [dim]Examples:[/dim]

      slackwater lateness orders.py

      slackwater lateness orders.py --target 0.999 --picture lateness.svg

      slackwater lateness --log data/orders --time placed_at

      slackwater lateness --kafka localhost:9092/orders --time placed_at --limit 100000

      slackwater lateness --log data/orders --time "ts * 1000" --schema "ts long" --limit 1000000 --json
    """
    if picture is not None:
        check_picture(picture)
    progress = ReadingProgress(quiet=quiet)
    of_log = {"time": time, "schema": schema, "format": form, "max_ahead": max_ahead}
    given = {name: value for name, value in of_log.items() if value is not None}
    if file is not None and log is None and kafka is None and not given:
        report = measure_plan(load_pipeline(file).plan(), target=target, limit=limit, watch=progress.watched)
    elif kafka is not None and file is None and log is None and time is not None and form is None:
        place = topic_at(kafka)
        if place is None:
            raise fault("LATENESS_KAFKA", got=shown_url(kafka))
        report = measure_topic(*place, **given, target=target, limit=limit, watch=progress.watched)
    elif log is not None and kafka is None and file is None and time is not None:
        report = measure_log(log, **given, target=target, limit=limit, watch=progress.watched)  # type: ignore[arg-type]  # by name
    else:
        raise fault("LATENESS_SUBJECT", got=_confusion(file, {"--log": log, "--kafka": kafka}, given))
    progress.end()
    if picture is not None:
        write_picture(report, picture)
    if as_json:
        typer.echo(report.to_json())
    else:
        print_report(report, Console())


def _confusion(file: Path | None, subjects: Mapping[str, object], given: Iterable[str]) -> str:
    named = [option for option, value in subjects.items() if value is not None]
    what = [str(file)] * (file is not None) + named + [f"--{name.replace('_', '-')}" for name in given]
    without = " without --time" if named and "time" not in given else ""
    return (" with ".join(what) or "none of them") + without


@dataclass(kw_only=True)
class ReadingProgress:
    """Prints the progress of reading: on a terminal in one line that is rewritten, otherwise now and then."""

    quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stderr)
    every_s: float = 2.0
    _last: str = ""

    def watched(self, reading: StreamToRead) -> Iterator[Chunk]:
        """Yield the chunks, and print how many records have been read."""
        began = shown = clock.monotonic()
        records, files, before = 0, 0, ""
        for chunk in reading.chunks:
            yield chunk
            records += chunk.frame.height
            files += chunk.file != before
            before = chunk.file
            now = clock.monotonic()
            if now - shown >= (0.2 if self.out.isatty() else self.every_s):
                shown = now
                of = f"  file {files:,} of {reading.files:,}" if reading.files else ""
                self._say(
                    f"{reading.stream}: {counted(records, 'record')}{of}  {records / (now - began):,.0f} records/s"
                )

    def end(self) -> None:
        """Clear the line, so that only the report remains."""
        if self._last:
            self.out.write("\r" + " " * len(self._last) + "\r")
            self.out.flush()

    def _say(self, text: str) -> None:
        if self.quiet:
            return
        if self.out.isatty():
            self.out.write("\r" + text.ljust(len(self._last)))
            self._last = text
        else:
            self.out.write(text + "\n")
        self.out.flush()
