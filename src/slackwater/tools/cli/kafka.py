"""`slackwater kafka up | topic | down`: a real Kafka broker for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from slackwater.base.errors import counted, fault
from slackwater.connectors.kafka import broker
from slackwater.connectors.kafka.address import cluster_at
from slackwater.connectors.kafka.client import Cluster, kafka_errors
from slackwater.tools.cli.options import at_home

kafka = typer.Typer(help="Run a single-node Kafka broker for development and tests.", no_args_is_help=True)
_PORT: Final = 9092
Folder = Annotated[Path, typer.Option(callback=at_home, help="Folder for data, settings and log.")]


@kafka.command()
def up(
    *,
    folder: Folder = Path(".slackwater/kafka"),
    port: Annotated[int | None, typer.Option(help="Client port; 9092 by default.")] = None,
    heap_mb: Annotated[int, typer.Option(help="JVM heap, in MB.")] = 512,
) -> None:
    """Start the broker and wait until it is ready. The first start downloads its jars (54 MB).

    [dim]Examples:[/dim]

      slackwater kafka up

      slackwater kafka up --port 19092 --folder /tmp/kafka
    """
    running = broker.find(folder.absolute())
    if running is not None and running.is_alive:
        if port not in (None, running.port):
            raise fault("BROKER_RUNNING", folder=folder, servers=running.servers, port=port)
        typer.echo(f"Kafka is already up at {running.servers}; {_down(folder)}")
        return
    typer.echo("starting a broker (the first start downloads its jars) …", err=True)
    started = broker.up(folder, port=_PORT if port is None else port, heap_mb=heap_mb)
    typer.echo(f"Kafka is up at {started.servers}; {_down(folder)}")


@kafka.command()
def topic(
    name: Annotated[str, typer.Argument(help="Topic name.")],
    *,
    partitions: Annotated[int, typer.Option(min=1, help="Number of partitions.")] = 4,
    servers: Annotated[str, typer.Option(help="Kafka bootstrap servers.")] = "localhost:9092",
) -> None:
    """Create a topic with one replica per partition; an existing topic is left unchanged.

    [dim]Examples:[/dim]

      slackwater kafka topic orders --partitions 12
    """
    known = cluster_at(servers)
    servers, cluster = known.servers, Cluster(connection=known)
    with kafka_errors(known):
        there = len(cluster.partitions([name]))
        if not there:
            cluster.create_topic(name, partitions=partitions)
    if there not in (0, partitions):
        raise fault(
            "KAFKA_TOPIC_EXISTS", topic=name, servers=servers, has=counted(there, "partition"), wanted=partitions
        )
    with_partitions = f"{name} with {counted(partitions, 'partition')} at {servers}"
    typer.echo(f"already exists: {with_partitions}" if there else f"created {with_partitions}")


@kafka.command()
def down(*, folder: Folder = Path(".slackwater/kafka")) -> None:
    """Stop the broker; its data is kept."""
    stopped = broker.down(folder)
    typer.echo(
        "the broker is stopped; its data stays in its folder" if stopped else f"no broker is running in {folder}"
    )


def _down(folder: Path) -> str:
    return f"stop it with: slackwater kafka down --folder {folder}"
