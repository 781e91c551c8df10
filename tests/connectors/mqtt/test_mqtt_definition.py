"""What a bridge may be told, and what it is refused for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.secrets import secret
from slackwater.connectors.mqtt.definition import KafkaPlace, mqtt_bridge
from slackwater.connectors.mqtt.running import RunningBridge


@pytest.mark.parametrize(
    "broker, options, address",
    [
        ("mqtt.example.com", {}, "mqtt.example.com:1883"),
        ("mqtt.example.com", {"tls": True}, "mqtt.example.com:8883 (TLS)"),
        ("10.0.0.7:1884", {"tls_ca": "ca.pem"}, "10.0.0.7:1884 (TLS)"),
        ("[::1]:1884", {}, "[::1]:1884"),
    ],
)
def test_a_broker_is_a_host_and_a_port(broker: str, options: dict[str, Any], address: str) -> None:
    assert mqtt_bridge(broker, "a", "log", **options).broker == address


@pytest.mark.parametrize(
    "broker", ["", ":1883", "mqtt://host:1883", "host:port", "host:0", "host:99999", "me@host", "host/x", "[::1"]
)
def test_a_broker_that_is_no_address_is_refused(broker: str) -> None:
    with pytest.raises(
        DefinitionError, match=r"MQTT_BRIDGE_OPTION.*`broker`.*must be host:port; got .*; try localhost:1883"
    ):
        mqtt_bridge(broker, "a", "log")


def test_a_password_in_a_broker_s_address_is_not_repeated() -> None:
    with pytest.raises(DefinitionError, match=r"got '…@host:1883'") as refused:
        mqtt_bridge("me:hush@host:1883", "a", "log")
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("topic", ["#", "+", "a/+/b", "a/#", "/", "+/+/#", "$share/group/a/+", "a b/ü"])
def test_a_filter_with_wildcards_in_their_places_is_taken(topic: str) -> None:
    assert mqtt_bridge("host", topic, "log").topics == (topic,)


@pytest.mark.parametrize("topic", ["", "a/#/b", "a#", "a+/b", "a\x00b", "x" * 65_536])
def test_a_filter_with_wildcards_out_of_place_is_refused(topic: str) -> None:
    with pytest.raises(DefinitionError, match=r"`topic` of an MQTT bridge must be a filter in which"):
        mqtt_bridge("host", ["good/#", topic], "log")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"topics": []}, r"`topic`.*at least one filter; got none"),
        ({"qos": 2}, r"`qos`.*must be 1, or 0.*; got 2; use 1: messages published with QoS 2 arrive"),
        ({"version": "4"}, r"`version`.*must be 5 or 3.1.1; got '4'"),
        ({"max_batch": 0}, r"`max_batch`.*must be 1 to 65535; got 0"),
        ({"partitions": 0}, r"`partitions`.*got 0"),
        ({"partitions": 4, "to": "kafka://h:9092/t"}, r"`partitions`.*got 4 for Kafka"),
        ({"client_id": ""}, r"`client_id`.*must be a stable name"),
        ({"password": secret("P")}, r"`password`.*given together with a username"),
        ({"to": "kafka://h:9092"}, r"`to`.*must be a log's folder or kafka://SERVERS/TOPIC"),
        ({"to": "kafka://h:9092/a b"}, r"`to`.*must be a log's folder or kafka://SERVERS/TOPIC"),
    ],
)
def test_an_option_that_cannot_be_right_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as raised:
        mqtt_bridge(**{"broker": "host", "topics": "a", "to": "log", **options})
    assert raised.value.code == "MQTT_BRIDGE_OPTION"


def test_a_password_is_a_secret_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DefinitionError, match="SECRET_EXPECTED"):
        mqtt_bridge("host", "a", "log", username="u", password="hunter2")  # type: ignore[arg-type]  # noqa: S106  the point
    monkeypatch.setenv("MQTT_PASSWORD", "hunter2")
    assert "hunter2" not in repr(mqtt_bridge("host", "a", "log", username="u", password=secret("MQTT_PASSWORD")))


def test_a_log_elsewhere_than_on_a_file_system_is_refused() -> None:
    with pytest.raises(DefinitionError, match="FOLDER_REMOTE"):
        mqtt_bridge("host", "a", "s3://bucket/log")


def test_a_kafka_target_is_servers_and_a_topic() -> None:
    target = mqtt_bridge("host", "a", "kafka://h:9092,i:9092/sensors").to
    assert isinstance(target, KafkaPlace)
    assert (target.connection.servers, target.topic, str(target)) == (
        "h:9092,i:9092",
        "sensors",
        "kafka://h:9092,i:9092/sensors",
    )


def test_the_session_is_found_again_by_topics_and_target(tmp_path: Path) -> None:
    ours = mqtt_bridge("host", ["a", "b"], tmp_path).client_id
    assert ours == mqtt_bridge("other:1884", ["b", "a"], str(tmp_path), flush_every="5s", raw=True).client_id
    assert ours != mqtt_bridge("host", ["a"], tmp_path).client_id
    assert ours != mqtt_bridge("host", ["a", "b"], tmp_path / "x").client_id
    assert len(ours) == 23
    assert mqtt_bridge("host", "a", tmp_path, client_id="mine").client_id == "mine"


def test_a_missing_client_library_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "paho.mqtt.client", None)
    with pytest.raises(RunError, match=r"requires the package paho-mqtt.*pip install 'slackwater\[mqtt\]'") as raised:
        RunningBridge(mqtt_bridge("host", "a", tmp_path))
    assert raised.value.code == "MQTT_CLIENT_MISSING"
