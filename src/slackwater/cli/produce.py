"""`slackwater produce FOLDER --topic T` and `slackwater log export FOLDER --topic T`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from slackwater.cli.progress import Counter
from slackwater.errors import counted, fault
from slackwater.ground.stopping import stopped_by_signals
from slackwater.kafka.address import cluster_at
from slackwater.topics.exporting import export
from slackwater.topics.playing import Pace, play

_INTERRUPTED: Final = 130
log = typer.Typer(help="An append-only log in a folder.", no_args_is_help=True)
Servers = Annotated[
    str, typer.Option(help="The Kafka cluster; 'host:9093?ca=ca.pem&user=me&password=NAME_OF_SECRET' for TLS and SASL.")
]
Topic = Annotated[str, typer.Option(help="The topic; it must exist.")]


def produce(
    folder: Annotated[Path, typer.Argument(help="A log of JSON lines, as `sw.LogWriter` writes it.")],
    *,
    topic: Topic,
    servers: Servers = "localhost:9092",
    key: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="The field that is the key of each record and decides its partition."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Records a second; as fast as it goes if left out.")
    ] = None,
    speed_up: Annotated[
        float | None,
        typer.Option(min=0.001, help="So many times as fast as the files were written: 1 is the original pace."),
    ] = None,
) -> None:
    """Play a log into a Kafka topic, each partition in its order; Ctrl-C stops when what is on its way has arrived.

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
            told=counter.told,
            is_stopping=lambda: stops[-1],
        )
    unsure = f"; {played.unsure:,} more were on their way and may not have arrived" if played.unsure else ""
    stopped = "stopped: " if played.is_stopped else ""
    counter.end(f"{stopped}delivered {counted(played.delivered, 'record')} of {folder} to {topic} at {cluster}{unsure}")
    if played.is_stopped:
        raise typer.Exit(_INTERRUPTED)


@log.command("export")
def export_topic(
    folder: Annotated[Path, typer.Argument(help="The log to write.")],
    *,
    topic: Topic,
    servers: Servers = "localhost:9092",
    append: Annotated[bool, typer.Option("--append", help="Add to a log that has files already.")] = False,
    skip: Annotated[bool, typer.Option("--skip", help="Records that no line can hold are no error.")] = False,
) -> None:
    """Write what a Kafka topic holds now into a log; keys and headers are left out.

    JSON on several lines is put on one. Other records with line breaks are counted and written nowhere.

    [dim]Examples:[/dim]

      slackwater log export data/orders --topic orders
    """
    counter = Counter("written")
    done = export(cluster_at(servers), topic, folder, append=append, told=counter.told)
    tombstones = f"; {done.empty:,} had no value and are left out" if done.empty else ""
    skipped = f"; {done.not_lines:,} fit no line and are left out: {done.named}" if done.not_lines and skip else ""
    counter.end(f"wrote {counted(done.written, 'record')} of {topic} to {folder}{tombstones}{skipped}")
    if done.not_lines and not skip:
        raise fault("EXPORT_NOT_LINES", count=counted(done.not_lines, "record"), topic=topic, places=done.named)
