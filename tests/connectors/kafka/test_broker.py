"""The broker for development: a real one, started and stopped, whose data survives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from slackwater.base.errors import RunError
from slackwater.connectors.kafka import broker
from slackwater.tools.cli.main import app

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, kafka_parts: None) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("kafka")
    yield home
    broker.down(home)


def consumed(servers: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return [message.value() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


@pytest.mark.long
def test_records_survive_a_restart_of_the_broker(folder: Path) -> None:
    first = broker.up(folder, port=broker.free_port())
    made = CliRunner().invoke(app, ["kafka", "topic", "events", "--partitions", "1", "--servers", first.servers])
    assert made.stdout == f"created events with 1 partition at {first.servers}\n"
    again = CliRunner().invoke(app, ["kafka", "topic", "events", "--partitions", "1", "--servers", first.servers])
    assert (again.exit_code, again.stdout) == (0, f"already exists: events with 1 partition at {first.servers}\n")
    with pytest.raises(RunError, match=r"KAFKA_TOPIC_EXISTS.*already has `events`, with 1 partition and not 4"):
        CliRunner().invoke(app, ["kafka", "topic", "events", "--servers", first.servers], catch_exceptions=False)
    producer = Producer({"bootstrap.servers": first.servers})
    records = [f"record {number}".encode() for number in range(1_000)]
    for record in records:
        producer.produce("events", record)
    assert producer.flush(30) == 0

    assert broker.up(folder, port=first.port) == first, "a broker that runs is not started twice"
    assert broker.down(folder)
    assert not first.is_alive
    assert not broker.down(folder)
    second = broker.up(folder, port=broker.free_port())
    assert consumed(second.servers, "events", len(records)) == records


def test_port_that_is_taken_is_an_error_that_says_what_to_do(folder: Path, tmp_path: Path) -> None:
    running = broker.up(folder, port=broker.free_port())
    with pytest.raises(RunError, match=rf"BROKER_PORT.*{running.port}.*--port"):
        broker.up(tmp_path, port=running.port)


def test_command_says_where_the_broker_is_and_that_it_is_stopped(folder: Path) -> None:
    running = broker.up(folder, port=broker.free_port())
    up = CliRunner().invoke(app, ["kafka", "up", "--folder", str(folder)])
    assert (up.exit_code, up.stderr) == (0, ""), "nothing is started"
    assert f"Kafka is already up at {running.servers}; stop it with" in up.stdout
    elsewhere = ["kafka", "up", "--folder", str(folder), "--port", str(broker.free_port())]
    with pytest.raises(
        RunError, match=rf"BROKER_RUNNING.*is already running at {running.servers}, so port \d+ was not used"
    ):
        CliRunner().invoke(app, elsewhere, catch_exceptions=False)
    down = CliRunner().invoke(app, ["kafka", "down", "--folder", str(folder)])
    assert "the broker is stopped" in down.stdout
    again = CliRunner().invoke(app, ["kafka", "down", "--folder", str(folder)])
    assert "no broker is running in" in again.stdout
