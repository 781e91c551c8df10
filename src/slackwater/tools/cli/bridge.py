"""`slackwater bridge mqtt`: from an MQTT broker to a log or a Kafka topic."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TextIO

import typer

from slackwater.base.errors import counted
from slackwater.base.secrets import secret
from slackwater.base.stopping import stopped_by_signals
from slackwater.connectors.mqtt.definition import mqtt_bridge
from slackwater.connectors.mqtt.running import RunningBridge, Tally
from slackwater.tools.cli.options import at_home

bridge = typer.Typer(help="Bridge other protocols into a log or a Kafka topic, at least once.", no_args_is_help=True)


@bridge.callback()
def _bridges() -> None:
    """Keep `mqtt` a separate command, although it is the only one."""


@bridge.command()
def mqtt(
    *,
    broker: Annotated[str, typer.Option(help="MQTT broker, host:port.")],
    topic: Annotated[list[str], typer.Option(help="Topic filter, such as 'sensors/+/temp'; repeatable.")],
    to: Annotated[str, typer.Option(help="Log folder, or kafka://SERVERS/TOPIC.")],
    qos: Annotated[int, typer.Option(help="1, or 0 for topics that may lose messages.")] = 1,
    client_id: Annotated[
        str | None, typer.Option(help="MQTT session to use; derived from topics and target by default.")
    ] = None,
    username: Annotated[str | None, typer.Option(help="MQTT user name.")] = None,
    password_secret: Annotated[
        str | None,
        typer.Option(help="Name of the password secret: a variable, <NAME>_FILE, or /run/secrets."),
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Use TLS with the system's certificate authorities.")] = False,
    tls_ca: Annotated[
        Path | None, typer.Option(callback=at_home, help="Use TLS with the certificate authorities in this PEM file.")
    ] = None,
    mqtt_version: Annotated[str, typer.Option(help="MQTT version, 5 or 3.1.1.")] = "5",
    flush_every: Annotated[str, typer.Option(help="Longest time a message waits before it is written.")] = "1s",
    max_batch: Annotated[int, typer.Option(help="Maximum number of messages per write.")] = 1_000,
    partitions: Annotated[
        int | None, typer.Option(help="Number of log partitions to spread topics over; one per topic by default.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Write raw payloads instead of JSON objects.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress lines.")] = False,
) -> None:
    """Write MQTT messages to a log or a Kafka topic until Ctrl-C or SIGTERM (a clean stop).

    Messages are acknowledged once they are durable, so none is lost; a crash may cause duplicates.

    [dim]Examples:[/dim]

      slackwater bridge mqtt --broker localhost:1883 --topic 'sensors/+/temp' --to data/sensors

      slackwater bridge mqtt --broker mqtt.example.com --tls --username bridge --password-secret MQTT_PASSWORD
      --topic 'sensors/#' --to kafka://localhost:9092/sensors
    """
    definition = mqtt_bridge(
        broker,
        topic,
        to,
        qos=qos,
        client_id=client_id,
        username=username,
        password=None if password_secret is None else secret(password_secret),
        tls=tls,
        tls_ca=tls_ca,
        version=mqtt_version,
        flush_every=flush_every,
        max_batch=max_batch,
        partitions=partitions,
        raw=raw,
    )
    lines = BridgeLines(is_quiet=quiet)
    running = RunningBridge(definition, on_progress=lines.update, on_notice=lines.noticed)
    with stopped_by_signals(running.stop):
        tally = running.run()
    lines.end(f"{summary(tally)}, to {definition.to}")


def summary(tally: Tally) -> str:
    """Return what a bridge did, as a sentence."""
    facts = [f"wrote {counted(tally.written, 'message')}", f"acknowledged {tally.acknowledged:,}"]
    if tally.without_ack:
        facts.append(f"{tally.without_ack:,} arrived with QoS 0, which a broker does not send again")
    if tally.wrapped:
        facts.append(f"{tally.wrapped:,} payloads did not fit on one line and became JSON objects")
    return ", ".join(facts)


@dataclass(kw_only=True)
class BridgeLines:
    """Prints what a bridge does: progress in one line that is rewritten on a terminal, notices in their own lines."""

    is_quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stderr)
    every_s: float = 2.0
    _shown_at: float = field(default_factory=time.monotonic)
    _shown_received: int = 0
    _width: int = 0

    def update(self, tally: Tally) -> None:
        """Update the counts."""
        now = time.monotonic()
        if self.is_quiet or now - self._shown_at < self.every_s:
            return
        rate = (tally.received - self._shown_received) / (now - self._shown_at)
        self._shown_at, self._shown_received = now, tally.received
        text = f"{counted(tally.received, 'message')}, {rate:,.0f} a second, {tally.held:,} waiting to be acknowledged"
        self.out.write(("\r" + text.ljust(self._width)) if self.out.isatty() else text + "\n")
        self._width = len(text)
        self.out.flush()

    def noticed(self, words: str) -> None:
        """Print a notice for the operator, even with --quiet."""
        self._clear()
        self.out.write(words + "\n")
        self.out.flush()

    def end(self, words: str) -> None:
        """Print what was done, on standard output."""
        self._clear()
        sys.stdout.write(words + "\n")

    def _clear(self) -> None:
        if self._width and self.out.isatty():
            self.out.write("\r" + " " * self._width + "\r")
            self._width = 0
