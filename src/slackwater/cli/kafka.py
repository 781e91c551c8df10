"""`slackwater kafka up | topic | down`: a real broker for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.kafka import broker
from slackwater.kafka.client import Cluster, kafka_errors
from slackwater.kafka.connection import connection

kafka = typer.Typer(help="A single real Kafka broker for development and tests.", no_args_is_help=True)
Folder = Annotated[Path, typer.Option(help="Where its data, settings and log are kept.")]


@kafka.command()
def up(
    *,
    folder: Folder = Path(".slackwater/kafka"),
    port: Annotated[int, typer.Option(help="The port that clients connect to.")] = 9092,
    heap_mb: Annotated[int, typer.Option(help="Memory of its JVM, in MB.")] = 512,
) -> None:
    """Start the broker and wait until it is ready. Its jars are fetched by Maven the first time (54 MB).

    [dim]Examples:[/dim]

      slackwater kafka up

      slackwater kafka up --port 19092 --folder /tmp/kafka
    """
    typer.echo("starting a broker (fetching its jars the first time) …", err=True)
    started = broker.up(folder, port=port, heap_mb=heap_mb)
    typer.echo(f"Kafka is up at {started.servers}; stop it with: slackwater kafka down --folder {folder}")


@kafka.command()
def topic(
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    *,
    partitions: Annotated[int, typer.Option(min=1, help="How many partitions it has.")] = 4,
    servers: Annotated[str, typer.Option(help="The cluster.")] = "localhost:9092",
) -> None:
    """Create a topic, with one replica of each partition.

    [dim]Examples:[/dim]

      slackwater kafka topic orders --partitions 12
    """
    with kafka_errors(servers):
        Cluster(connection=connection(servers)).create_topic(name, partitions=partitions)
    typer.echo(f"created {name} with {partitions} partitions at {servers}")


@kafka.command()
def down(*, folder: Folder = Path(".slackwater/kafka")) -> None:
    """Stop the broker; its data stays where it is."""
    stopped = broker.down(folder)
    typer.echo("the broker is stopped; its data stays in its folder" if stopped else f"no broker runs in {folder}")
