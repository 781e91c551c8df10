"""`slackwater produce FOLDER --topic T` and `slackwater log export FOLDER --topic T`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.progress import Counter
from slackwater.kafka.connection import connection
from slackwater.kafka.playing import Pace, export, play

log = typer.Typer(help="An append-only log in a folder.", no_args_is_help=True)
Servers = Annotated[str, typer.Option(help="The Kafka cluster.")]
Topic = Annotated[str, typer.Option(help="The topic; it must exist.")]


def produce(
    folder: Annotated[Path, typer.Argument(help="A log of JSON lines, as `slackwater.log_writer` writes it.")],
    *,
    topic: Topic,
    servers: Servers = "localhost:9092",
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Records a second; as fast as it goes if left out.")
    ] = None,
    speed_up: Annotated[
        float | None,
        typer.Option(min=0.001, help="So many times as fast as the files were written: 1 is the original pace."),
    ] = None,
) -> None:
    """Play a log into a Kafka topic, each partition in its order.

    [dim]Examples:[/dim]

      slackwater produce data/orders --topic orders

      slackwater produce data/orders --topic orders --rate 5000

      slackwater produce data/orders --topic orders --speed-up 60
    """
    counter = Counter("sent")
    sent = play(folder, connection(servers), topic, pace=Pace(rate=rate, speed_up=speed_up), told=counter.told)
    counter.end(f"sent {sent:,} records of {folder} to {topic} at {servers}")


@log.command("export")
def export_topic(
    folder: Annotated[Path, typer.Argument(help="The log to write; records are appended if it exists.")],
    *,
    topic: Topic,
    servers: Servers = "localhost:9092",
) -> None:
    """Write what a Kafka topic holds now into a log; keys and headers are left out.

    [dim]Examples:[/dim]

      slackwater log export data/orders --topic orders
    """
    counter = Counter("written")
    written, empty = export(connection(servers), topic, folder, told=counter.told)
    tombstones = f"; {empty:,} had no value and are left out" if empty else ""
    counter.end(f"wrote {written:,} records of {topic} to {folder}{tombstones}")
