"""Servers that a Kafka sink cannot reach, or reaches and does not understand: which it is, and how soon it is said."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.kafka.broker import free_port
from slackwater.connectors.kafka.sink import kafka, preparing
from slackwater.kafka import tls
from slackwater.testing import SinkHarness
from tests.connectors.kafka.sinks import SCHEMA, ids, job, rows
from tests.connectors.kafka.topics import Topics

pytestmark = pytest.mark.kafka


def starts(servers: str, **options: Any) -> None:  # noqa: ANN401  the sink's own
    SinkHarness(sink=kafka(servers, "t", **options), schema=SCHEMA).start()


def test_servers_that_refuse_connections_are_reported_before_the_client_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(preparing, "Topics")
    port = free_port()
    words = rf"localhost:{port} refuses connections, no\.host\.invalid is an unknown host"
    with pytest.raises(RunError, match=rf"SINK_UNREACHABLE.*cannot connect to Kafka t at localhost:.*: {words}"):
        starts(f"localhost:{port}, no.host.invalid:9092")


def test_every_way_to_write_a_server_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuses(address: tuple[str, int], **_: Any) -> None:  # noqa: ANN401  the time that it has
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuses)
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*\[::1\]:2 refuses connections"):
        starts("PLAINTEXT://one:1, [::1]:2,10.0.0.3:3")
    assert asked == [("one", 1), ("::1", 2), ("10.0.0.3", 3)]


def test_one_server_that_takes_connections_is_enough(topics: Topics) -> None:
    topic = topics.make()
    several = Topics(servers=f"localhost:{free_port()},{topics.servers}")
    job(several, topic).deliver(rows(1))
    assert ids(topics, topic) == [1]


@pytest.mark.parametrize("servers", ["localhost:{port}", "localhost:{port},localhost:9"])
def test_server_that_says_neither_yes_nor_no_is_left_to_the_client(
    monkeypatch: pytest.MonkeyPatch, servers: str
) -> None:
    def hangs(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise TimeoutError

    monkeypatch.setattr(preparing, "_TIMEOUT_S", 1.0)
    monkeypatch.setattr(socket, "create_connection", hangs)
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*Kafka t at localhost:"):
        starts(servers.format(port=free_port()))


def test_tls_at_a_port_without_is_no_broker_that_is_away(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "_TIMEOUT_S", 2.0)
    words = r"SSL.*; check that `tls` and `sasl` match that listener \(here: TLS, no SASL\)"
    with pytest.raises(RunError, match=rf"KAFKA_SINK_NO_ANSWER.*\(TLS\) accepts .* but does not reply.*{words}"):
        starts(topics.servers, tls=tls())


def test_port_at_which_nobody_speaks_kafka_is_no_broker_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "_TIMEOUT_S", 1.0)
    with (
        socket.create_server(("localhost", 0)) as listener,
        pytest.raises(RunError, match=r"KAFKA_SINK_NO_ANSWER.*output `results`: .*\(here: no TLS, no SASL\)"),
    ):
        starts(f"localhost:{listener.getsockname()[1]}")
