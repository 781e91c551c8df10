"""`slackwater produce FOLDER --topic T` and `slackwater log export FOLDER --topic T`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from slackwater.base.errors import counted, fault
from slackwater.base.stopping import stopped_by_signals
from slackwater.connectors.kafka.address import cluster_at
from slackwater.connectors.kafka.exporting import export
from slackwater.connectors.kafka.playing import Pace, play
from slackwater.tools.cli.options import at_home
from slackwater.tools.cli.progress import Counter

_INTERRUPTED: Final = 130
log = typer.Typer(help="Work with append-only logs.", no_args_is_help=True)
Servers = Annotated[
    str,
    typer.Option(help="Kafka bootstrap servers; with TLS and SASL 'host:9093?ca=ca.pem&user=me&password=SECRET_NAME'."),
]
Topic = Annotated[str, typer.Option(help="Topic; it must exist.")]


def produce(
    folder: Annotated[Path, typer.Argument(callback=at_home, help="Log of JSON lines, as written by `sw.LogWriter`.")],
    *,
    topic: Topic,
    servers: Servers = "localhost:9092",
    key: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Field to use as record key; it decides the partition.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Records per second; unlimited by default.")] = None,
    speed_up: Annotated[
        float | None,
        typer.Option(min=0.001, help="Multiple of the pace at which the files were written; 1 is the original pace."),
    ] = None,
) -> None:
    """Replay a log into a Kafka topic, each partition in order; Ctrl-C waits for records in flight, then stops.

    [dim]Examples:[/dim]

      slackwater produce data/orders --topic orders

      slackwater produce data/orders --topic orders --key user_id --rate 5000

      slackwater produce data/orders --topic orders --speed-up 60
    """
    counter, stops, cluster = Counter("delivered"), [False], cluster_at(servers)
    with stopped_by_signals(lambda: stops.append(True)):
        played = play(
            folder,
            cluster,
            topic,
            key=key,
            pace=Pace(rate=rate, speed_up=speed_up),
            on_progress=counter.update,
            is_stopping=lambda: stops[-1],
        )
    unsure = f"; {played.unsure:,} more were in flight and may not have arrived" if played.unsure else ""
    stopped = "stopped: " if played.is_stopped else ""
    counter.end(f"{stopped}delivered {counted(played.delivered, 'record')} of {folder} to {topic} at {cluster}{unsure}")
    if played.is_stopped:
        raise typer.Exit(_INTERRUPTED)


@log.command("export")
def export_topic(
    folder: Annotated[Path, typer.Argument(callback=at_home, help="Log to write.")],
    *,
    topic: Topic,
    servers: Servers = "localhost:9092",
    append: Annotated[bool, typer.Option("--append", help="Append to an existing log.")] = False,
    skip: Annotated[
        bool, typer.Option("--skip", help="Skip records that do not fit on one line instead of failing.")
    ] = False,
) -> None:
    """Write the current records of a Kafka topic to a log, without keys and headers.

    Multi-line JSON is joined into one line. Other records with line breaks are counted, not written.

    [dim]Examples:[/dim]

      slackwater log export data/orders --topic orders
    """
    counter = Counter("written")
    done = export(cluster_at(servers), topic, folder, append=append, on_progress=counter.update)
    tombstones = f"; {done.empty:,} had no value and were skipped" if done.empty else ""
    skipped = (
        f"; {done.not_lines:,} did not fit on one line and were skipped: {done.named}"
        if done.not_lines and skip
        else ""
    )
    counter.end(f"wrote {counted(done.written, 'record')} of {topic} to {folder}{tombstones}{skipped}")
    if done.not_lines and not skip:
        raise fault("EXPORT_NOT_LINES", count=counted(done.not_lines, "record"), topic=topic, places=done.named)
