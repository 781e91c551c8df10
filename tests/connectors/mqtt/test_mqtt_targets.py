"""What is durable when a target's `write` has returned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from slackwater.base.errors import RunError
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.mqtt import link
from slackwater.connectors.mqtt.definition import KafkaPlace, mqtt_bridge
from slackwater.connectors.mqtt.messages import Message
from slackwater.connectors.mqtt.targets import KafkaTarget, LogTarget
from tests.connectors.mqtt.at_work import at_work, lines
from tests.connectors.mqtt.scripted import scripted_broker


def message(payload: bytes, topic: str = "s/1") -> Message:
    return Message(
        topic=topic,
        payload=payload,
        qos=1,
        retain=False,
        dup=False,
        packet_id=1,
        received_at=datetime(2026, 3, 1, tzinfo=UTC),
    )


def test_messages_are_in_the_log_when_write_returns_each_topic_in_its_order(tmp_path: Path) -> None:
    target = LogTarget(str(tmp_path / "log"))
    target.write([message(b"1", "s/1"), message(b"2", "s/2"), message(b"3", "s/1")])
    assert [json.loads(line)["payload"] for line in lines(tmp_path / "log", "s.1")] == [1, 3]
    assert [json.loads(line)["payload"] for line in lines(tmp_path / "log", "s.2")] == [2]
    target.close()


def test_raw_payloads_are_lines_and_those_that_do_not_fit_are_wrapped_and_counted(tmp_path: Path) -> None:
    target = LogTarget(str(tmp_path / "log"), is_raw=True)
    target.write([message(b'{"a":1}'), message(b"two\nlines"), message(b""), message(b"\xff"), message(b"x\r")])
    plain = [line for line in lines(tmp_path / "log") if not line.startswith(b'{"topic"')]
    wrapped = [json.loads(line)["payload_base64"] for line in lines(tmp_path / "log") if line.startswith(b'{"topic"')]
    assert plain == [b'{"a":1}', b"", b"\xff"]
    assert wrapped == ["dHdvCmxpbmVz", "eA0="]
    assert target.wrapped == 2


def test_more_topics_than_a_process_may_open_files_are_written(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = len(list(Path("/proc/self/fd").iterdir()))  # whatever other tests have open in this process
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 100, before[1]))
    try:
        LogTarget(str(tmp_path / "log")).write([message(b"1", f"s/{number}") for number in range(401)])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(lines(tmp_path / "log")) == 401


def test_a_log_that_cannot_be_written_is_a_fault_that_says_nothing_was_acknowledged(tmp_path: Path) -> None:
    target = LogTarget(str(tmp_path / "log"))
    (tmp_path / "log" / "s.1").write_text("not a folder")
    with pytest.raises(
        RunError, match=r"writing them to .*log failed: .*exists.*; .*none of them was acknowledged"
    ) as raised:
        target.write([message(b"1")])
    assert raised.value.code == "MQTT_TARGET_FAILED"


def test_a_folder_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="MQTT_TARGET_FAILED"):
        LogTarget(str(tmp_path / "file" / "log"))


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Give librdkafka's own broker, which lives in the client that asked for it."""
    host = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = host.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"
    host.flush()


def taken(servers: str, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found: list[tuple[bytes, bytes]] = []
    while len(found) < count:
        record = consumer.poll(10)
        assert record is not None, found
        assert record.error() is None
        found.append((record.key() or b"", record.value() or b""))
    consumer.close()
    return found


def place(servers: str, topic: str) -> KafkaPlace:
    Producer({"bootstrap.servers": servers}).list_topics(topic, timeout=10)  # the mock makes a topic that is asked for
    return KafkaPlace(connection=connection(servers), topic=topic)


def test_messages_are_in_kafka_when_write_returns_with_their_topic_as_the_key(servers: str) -> None:
    target = KafkaTarget(place(servers, "wrapped"))
    target.write([message(b"1", "s/1"), message(b"2", "s/1"), message(b"3", "s/2")])
    found = [(key, json.loads(value)["payload"]) for key, value in taken(servers, "wrapped", 3)]
    assert sorted(found) == [(b"s.1", 1), (b"s.1", 2), (b"s.2", 3)]
    target.close()


def test_raw_payloads_are_kafka_values_as_they_are(servers: str) -> None:
    target = KafkaTarget(place(servers, "raw"), is_raw=True)
    target.write([message(b"two\nlines"), message(b"\xff" * 2_000_000)])
    assert sorted(len(value) for _, value in taken(servers, "raw", 2)) == [9, 2_000_000]
    assert target.wrapped == 0


def test_a_bridge_to_kafka_acknowledges_what_kafka_has_taken(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_LEAVE_S", 0.1)
    place(servers, "bridged")
    with scripted_broker() as broker:
        definition = mqtt_bridge(broker.address, "s/#", f"kafka://{servers}/bridged", flush_every="10ms", raw=True)
        with at_work(definition):
            peer = broker.meet()
            peer.publish(1, b"a")
            peer.publish(2, b"b")
            assert peer.acknowledged(2) == [1, 2]
    assert sorted(taken(servers, "bridged", 2)) == [(b"s.1", b"a"), (b"s.1", b"b")]


def test_a_topic_that_does_not_exist_is_a_fault(servers: str) -> None:
    with pytest.raises(RunError, match="KAFKA_TOPIC_MISSING"):
        KafkaTarget(KafkaPlace(connection=connection(servers), topic="nowhere"))


def test_a_cluster_that_goes_away_is_a_fault_that_says_nothing_was_acknowledged() -> None:
    host = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = host.list_topics(timeout=10).brokers.values()
    target = KafkaTarget(place(f"{broker.host}:{broker.port}", "short"), timeout_s=0.5)
    del host  # and its broker with it
    with pytest.raises(RunError, match=r"writing them to kafka://.*/short failed: .*; .*none of them was acknowledged"):
        target.write([message(b"1")])
