"""From a real broker into a log: quiet runs, kills, restarts, and payloads and topics of every kind."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.mqtt.definition import MqttBridge, mqtt_bridge
from tests.connectors.mqtt.at_work import AtWork, at_work, lines, until
from tests.connectors.mqtt.real_brokers import KINDS, USER, RealBroker, real_broker

START = "from slackwater.tools.cli.bridge import bridge; bridge()"


@pytest.fixture(scope="module", params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    started = real_broker(request.param, tmp_path_factory.mktemp("broker"))
    yield started
    started.stop()


def bridge(broker: RealBroker, topic: str, folder: Path, **options: Any) -> MqttBridge:  # noqa: ANN401  as mqtt_bridge's
    given = {"username": USER, "version": broker.version, "flush_every": "50ms", **options}
    return mqtt_bridge(broker.address, topic, folder, **given)


def numbers(folder: Path) -> Counter[int]:
    return Counter(json.loads(line)["payload"] for line in lines(folder))


def numbered(topic: str, start: int, stop: int) -> list[tuple[str, bytes]]:
    return [(f"{topic}/{number % 3}", b"%d" % number) for number in range(start, stop)]


def test_every_message_is_in_the_log_once_after_a_quiet_run(broker: RealBroker, tmp_path: Path) -> None:
    with at_work(bridge(broker, "quiet/#", tmp_path / "log")) as work:
        until(work.is_connected, what="a connection")
        broker.publish(numbered("quiet", 0, 500))
        until(lambda: work.tally.acknowledged == 500, what="500 messages")
    assert numbers(tmp_path / "log") == Counter(range(500))
    assert [int(line.rpartition(b":")[2][:-1]) for line in lines(tmp_path / "log", "quiet.1")] == list(range(1, 500, 3))


def test_what_is_published_while_the_bridge_is_away_comes_when_it_is_back(broker: RealBroker, tmp_path: Path) -> None:
    with at_work(bridge(broker, "away/#", tmp_path / "log")) as work:
        until(work.is_connected, what="a session")
    broker.publish(numbered("away", 0, 100))
    with at_work(bridge(broker, "away/#", tmp_path / "log")) as work:
        until(lambda: work.tally.acknowledged == 100, what="100 messages")
        until(work.is_connected, what="the subscription's answer")
    assert work.notices[0].endswith("resuming its session")
    assert numbers(tmp_path / "log") == Counter(range(100))


def in_a_process(broker: RealBroker, topic: str, folder: Path, flush_every: str) -> subprocess.Popen[str]:
    options = ["--broker", broker.address, "--topic", topic, "--to", str(folder), "--username", USER]
    more = ["--mqtt-version", broker.version, "--flush-every", flush_every, "--max-batch", "40"]
    command = [sys.executable, "-c", START, "mqtt", *options, *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    assert "connected to" in process.stderr.readline()
    return process


@pytest.mark.crash
def test_nothing_is_lost_when_the_bridge_is_killed(broker: RealBroker, tmp_path: Path) -> None:
    """Killed with a batch on disk and acknowledged, and another in memory; more is published while it is dead."""
    log = tmp_path / "log"
    with in_a_process(broker, "killed/#", log, "1h") as first:
        broker.publish(numbered("killed", 0, 70))
        until(lambda: log.exists() and len(lines(log)) >= 40, what="a batch in the log")
        first.kill()
    assert len(lines(log)) == 40
    broker.publish(numbered("killed", 70, 100))
    with in_a_process(broker, "killed/#", log, "50ms") as second:
        until(lambda: len(numbers(log)) == 100, what="the rest in the log")
        second.send_signal(signal.SIGTERM)
        said, _ = second.communicate(timeout=30)
    assert second.returncode == 0
    assert said.startswith("wrote ")
    doubles = sum(numbers(log).values()) - 100
    assert 0 <= doubles <= 40, "only what was on disk and not acknowledged may be there twice"


def test_the_bridge_goes_on_when_the_broker_was_restarted(tmp_path: Path, broker: RealBroker) -> None:
    own = real_broker(broker.kind, tmp_path / "broker")
    try:
        with at_work(bridge(own, "restart/#", tmp_path / "log")) as work:
            until(work.is_connected, what="a connection")
            own.publish(numbered("restart", 0, 30))
            until(lambda: work.tally.acknowledged == 30, what="30 messages")
            own.stop()
            until(lambda: any("[MQTT_AWAY]" in notice for notice in work.notices), what="the loss")
            own.start()
            until(lambda: work.notices[-1].startswith("connected"), what="another connection")
            own.publish(numbered("restart", 30, 60))
            until(lambda: len(numbers(tmp_path / "log")) == 60, what="the rest")
    finally:
        own.stop()
    is_forgotten = any("[MQTT_SESSION_LOST]" in notice for notice in work.notices)
    assert is_forgotten == (broker.kind == "amqtt"), "amqtt keeps sessions in memory; Mosquitto on disk"


def test_what_a_broken_target_did_not_take_comes_again(broker: RealBroker, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    (log / "broken.1").write_text("in the way")
    work = AtWork(bridge(broker, "broken/#", log))
    until(work.is_connected, what="a connection")
    broker.publish(numbered("broken", 1, 2))
    with pytest.raises(RunError, match="MQTT_TARGET_FAILED"):
        work.ended()
    assert work.tally.acknowledged == 0
    (log / "broken.1").unlink()
    with at_work(bridge(broker, "broken/#", log)) as work:
        until(lambda: work.tally.acknowledged == 1, what="the message again")
    [record] = map(json.loads, lines(log))
    assert (record["payload"], record["dup"]) == (1, True)


def test_payloads_of_every_kind_arrive_as_they_are(broker: RealBroker, tmp_path: Path) -> None:
    payloads = [b"ON", b"", b"\x00\xff\n", b'{"a": [1, 2.50]}', b'"text"', b"x" * 3_000_000, b'{\n"b": 1\n}']
    with at_work(bridge(broker, "kinds/#", tmp_path / "log")) as work:
        until(work.is_connected, what="a connection")
        broker.publish([(f"kinds/{number}", payload) for number, payload in enumerate(payloads)])
        until(lambda: work.tally.acknowledged == len(payloads), what="all")
    found = {record["topic"]: record for record in map(json.loads, lines(tmp_path / "log"))}
    for number, payload in enumerate(payloads):
        record = found[f"kinds/{number}"]
        if "payload" in record:
            assert record["payload"] == json.loads(payload)
        else:
            assert base64.b64decode(record["payload_base64"]) == payload
    assert sum("payload" in record for record in found.values()) == 3


def test_topics_with_odd_characters_each_have_their_folder(broker: RealBroker, tmp_path: Path) -> None:
    topics = [
        "odd/Küche/°C",
        "odd//empty",
        "odd/../up",
        "odd/a b",
        "odd/a=b",
        "odd/.hidden",
        "odd/" + "x" * 300,
        "odd/plain",
    ]
    with at_work(bridge(broker, "odd/#", tmp_path / "log")) as work:
        until(work.is_connected, what="a connection")
        broker.publish([(topic, b"1") for topic in topics])
        until(lambda: work.tally.acknowledged == len(topics), what="all")
    assert sorted(json.loads(line)["topic"] for line in lines(tmp_path / "log")) == sorted(topics)
    folders = [path.name for path in (tmp_path / "log").iterdir()]
    assert len(folders) == len(topics)
    assert "odd.plain" in folders
