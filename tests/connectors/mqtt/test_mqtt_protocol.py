"""When a message is acknowledged, and when it must not be: the test is the broker, and sees every packet."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.base.errors import RunError, fault
from slackwater.connectors.mqtt import link, running
from slackwater.connectors.mqtt.definition import MqttBridge, mqtt_bridge
from slackwater.connectors.mqtt.messages import Message
from tests.connectors.mqtt.at_work import AtWork, at_work, lines, until
from tests.connectors.mqtt.scripted import (
    CONNACK,
    CONNECT,
    DISCONNECT,
    PUBACK,
    SUBSCRIBE,
    ScriptedBroker,
    scripted_broker,
)

TAKEN_OVER = 0x8E


class SlowTarget:
    """A target that is as slow as the test wants, and fails if it is told to."""

    def __init__(self) -> None:
        self.wrapped = 0
        self.written: list[bytes] = []
        self.is_asked = threading.Event()
        self.may_end = threading.Event()
        self.fails = False
        self.is_one_at_a_time = False

    def write(self, messages: Sequence[Message]) -> None:
        self.is_asked.set()
        assert self.may_end.wait(30)
        if self.is_one_at_a_time:
            self.may_end.clear()
        if self.fails:
            raise fault("MQTT_TARGET_FAILED", target="a test", cause="disk full")
        self.written += [message.payload for message in messages]

    def close(self) -> None:
        pass


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedBroker]:
    monkeypatch.setattr(link, "_LEAVE_S", 0.1)  # the test does not hang up when the bridge takes leave
    with scripted_broker() as made:
        yield made


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> SlowTarget:
    made = SlowTarget()
    monkeypatch.setattr(running, "open_target", lambda _: made)
    monkeypatch.setattr(running, "_BACKOFF", replace(running._BACKOFF, first_s=0.01))
    return made


def bridge(broker: ScriptedBroker, folder: Path, **options: Any) -> MqttBridge:  # noqa: ANN401  as mqtt_bridge's
    return mqtt_bridge(broker.address, "s/#", folder, **{"flush_every": "10ms", **options})


def test_the_session_outlives_the_connection_and_the_broker_learns_how_much_we_hold(
    broker: ScriptedBroker, tmp_path: Path
) -> None:
    with at_work(bridge(broker, tmp_path, max_batch=70)):
        peer = broker.meet()
    connect, subscribe = peer.connect, peer.subscribe
    assert peer.version == 5
    assert connect[7] & 0b10 == 0, "a clean start would throw the session away"
    assert b"\x11\xff\xff\xff\xff" in connect, "the session never expires"
    assert b"\x21\x00\x8c" in connect, "receive maximum: two batches"
    assert subscribe.endswith(b"\x00\x03s/#\x11"), "QoS 1, and retained messages for a new subscription alone"


def test_the_older_version_asks_for_a_lasting_session_as_well(broker: ScriptedBroker, tmp_path: Path) -> None:
    with at_work(bridge(broker, tmp_path, version="3.1.1", client_id="mine")):
        peer = broker.meet()
    assert (peer.version, peer.client_id, peer.connect[7] & 0b10) == (4, "mine", 0)


def test_nothing_is_acknowledged_before_it_is_durable(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    with at_work(bridge(broker, tmp_path)):
        peer = broker.meet()
        peer.publish(7, b"a")
        peer.publish(8, b"b")
        assert target.is_asked.wait(30)
        assert not peer.has_sent()
        target.may_end.set()
        assert peer.acknowledged(2) == [7, 8]
    assert target.written == [b"a", b"b"]


def test_a_target_that_fails_ends_the_bridge_with_nothing_acknowledged(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    target.fails = True
    target.may_end.set()
    work = AtWork(bridge(broker, tmp_path))
    peer = broker.meet()
    peer.publish(7, b"a")
    with pytest.raises(RunError, match="disk full"):
        work.ended()
    assert [packet.kind for packet in peer.rest()] == [DISCONNECT]


def test_stopping_writes_and_acknowledges_what_is_held_and_takes_leave(broker: ScriptedBroker, tmp_path: Path) -> None:
    with at_work(bridge(broker, tmp_path / "log", flush_every="1h")) as work:
        peer = broker.meet()
        for number in range(1, 41):
            peer.publish(number, b"%d" % number)
        until(lambda: work.tally.received == 40, what="40 messages")
        assert lines(tmp_path / "log") == []
        tally = work.end()
    assert (tally.written, tally.acknowledged, tally.held) == (40, 40, 0)
    assert len(lines(tmp_path / "log", "s.1")) == 40
    packets = peer.rest()
    assert [packet.number for packet in packets if packet.kind == PUBACK] == list(range(1, 41))
    assert packets[-1].kind == DISCONNECT


def test_stopping_with_messages_on_the_wire_does_not_take_the_acknowledgements_with_it(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    """A socket that is closed with something unread resets the connection, and the broker may read no further."""
    with at_work(bridge(broker, tmp_path, version="3.1.1", max_batch=1)) as work:
        peer = broker.meet()
        for number in range(1, 503):
            peer.publish(number, b"x")
        until(lambda: work.tally.received == 2, what="as many as it may hold")
        work.stop()
        target.may_end.set()
        work.ended()
    packets = peer.rest()
    assert [packet.number for packet in packets[:-1]] == [1, 2]
    assert packets[-1].kind == DISCONNECT


def test_a_message_is_never_acknowledged_on_a_later_connection(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    """There its number may be that of another message, which is not durable."""
    with at_work(bridge(broker, tmp_path)) as work:
        first = broker.meet()
        first.publish(7, b"old")
        assert target.is_asked.wait(30)
        first.close()
        second = broker.meet(resumed=True, subscribes=False)
        second.publish(7, b"new")
        until(lambda: work.tally.received == 2, what="the second message")
        target.may_end.set()
        assert second.acknowledged(1) == [7]
        assert target.written == [b"old", b"new"], "acknowledged when the second was durable, not the first"
        tally = work.end()
    assert (tally.written, tally.acknowledged) == (2, 1)
    assert [packet.kind for packet in second.rest()] == [DISCONNECT]


def test_a_number_that_comes_once_more_on_its_connection_is_acknowledged_once_and_for_the_later_message(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    target.is_one_at_a_time = True
    with at_work(bridge(broker, tmp_path)) as work:
        peer = broker.meet()
        peer.publish(7, b"a")
        assert target.is_asked.wait(30)
        peer.publish(7, b"b", dup=True)
        until(lambda: work.tally.received == 2, what="the number again")
        target.is_asked.clear()
        target.may_end.set()
        assert target.is_asked.wait(30), "the first is durable, the second is being written"
        assert not peer.has_sent()
        target.may_end.set()
        assert peer.acknowledged(1) == [7]
        assert target.written == [b"a", b"b"]
        work.end()
    assert [packet.kind for packet in peer.rest()] == [DISCONNECT]


def test_a_connection_that_is_lost_is_made_again_without_subscribing_anew(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    target.may_end.set()
    with at_work(bridge(broker, tmp_path)) as work:
        broker.meet().close()
        peer = broker.meet(resumed=True, subscribes=False)
        peer.publish(1, b"a")
        assert peer.acknowledged(1) == [1]
    kinds = [notice.split()[0] for notice in work.notices]
    assert kinds == ["connected", "[MQTT_AWAY]", "connected"]
    assert "the broker keeps the messages until then" in work.notices[1]
    assert work.notices[2].endswith("resuming its session")


def test_a_session_that_the_broker_has_forgotten_is_reported_and_created_again(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    target.may_end.set()
    with at_work(bridge(broker, tmp_path)) as work:
        broker.meet().close()
        peer = broker.meet(resumed=False, subscribes=True)
        peer.publish(1, b"a")
        assert peer.acknowledged(1) == [1]
    [lost] = [notice for notice in work.notices if notice.startswith("[MQTT_SESSION_LOST]")]
    assert "messages published in the meantime may be lost" in lost


def test_a_new_session_whose_subscription_was_never_granted_is_subscribed_again(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    target.may_end.set()
    with at_work(bridge(broker, tmp_path)) as work:
        broker.meet().close()
        forgetful = broker.accept()
        forgetful.welcome(resumed=False)
        forgetful.next(SUBSCRIBE)
        forgetful.close()
        peer = broker.meet(resumed=True, subscribes=True)
        peer.publish(1, b"a")
        assert peer.acknowledged(1) == [1]
    assert sum(notice.startswith("[MQTT_SESSION_LOST]") for notice in work.notices) == 1


def test_attempts_are_further_and_further_apart_but_never_given_up() -> None:
    waits = [running._BACKOFF.pause_s(failures) for failures in (1, 4, 7, 5_000)]
    assert 0.1 < waits[0] <= 0.25 < waits[1] <= 2 < waits[2] <= 16
    assert 15 <= waits[3] <= 30


def test_a_broker_that_is_not_there_yet_again_is_tried_until_it_is(
    broker: ScriptedBroker, target: SlowTarget, tmp_path: Path
) -> None:
    target.may_end.set()
    with at_work(bridge(broker, tmp_path)) as work:
        broker.meet().close()
        broker.accept().close()
        busy = broker.accept()
        busy.welcome(reason=0x89)
        peer = broker.meet(resumed=True, subscribes=False)
        peer.publish(1, b"a")
        assert peer.acknowledged(1) == [1]
    assert any("Server busy" in notice for notice in work.notices)


def test_a_bridge_reads_no_more_than_it_may_hold(broker: ScriptedBroker, target: SlowTarget, tmp_path: Path) -> None:
    """QoS 0, which no receive maximum bounds: what does not fit stays on the wire."""
    with at_work(bridge(broker, tmp_path, max_batch=10)) as work:
        peer = broker.meet()
        for number in range(500):
            peer.publish(0, b"%d" % number, qos=0)
        until(lambda: work.tally.received == 20, what="two batches")
        assert target.is_asked.wait(30)
        assert work.tally.held == 20
        target.may_end.set()
        until(lambda: work.tally.written == 500, what="all of them")
        tally = work.end()
    assert target.written == [b"%d" % number for number in range(500)]
    assert (tally.without_ack, tally.acknowledged) == (500, 0)


@pytest.mark.parametrize(
    "reason, words",
    [
        (0x86, "must be allowed to connect; .* replied: Bad user name or password; check username, password"),
        (0x84, "replied: Unsupported protocol version; use --mqtt-version 3.1.1"),
    ],
)
def test_a_broker_that_refuses_the_first_connection_ends_the_bridge(
    broker: ScriptedBroker, tmp_path: Path, reason: int, words: str
) -> None:
    work = AtWork(bridge(broker, tmp_path))
    broker.accept().welcome(reason=reason)
    with pytest.raises(RunError, match=words) as raised:
        work.ended()
    assert raised.value.code == "MQTT_REFUSED"


def test_a_broker_of_the_older_version_that_says_so_is_understood(broker: ScriptedBroker, tmp_path: Path) -> None:
    work = AtWork(bridge(broker, tmp_path))
    peer = broker.accept()
    peer.next(CONNECT)
    peer.send(CONNACK << 4, b"\x00\x01")
    with pytest.raises(RunError, match=r"replied: Unsupported protocol version; use --mqtt-version 3\.1\.1"):
        work.ended()


@pytest.mark.parametrize(
    "version, hint", [("5", "respond: try --mqtt-version 3.1.1"), ("3.1.1", "no response in 0.1 s;")]
)
def test_a_broker_that_is_silent_at_the_start_ends_the_bridge(
    broker: ScriptedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, hint: str
) -> None:
    monkeypatch.setattr(link, "_ANSWER_S", 0.1)
    work = AtWork(bridge(broker, tmp_path, version=version))
    with pytest.raises(RunError, match=re.escape(hint)) as raised:
        work.ended()
    assert raised.value.code == "MQTT_UNREACHABLE"


@pytest.mark.parametrize("granted", [0x87, 0x00], ids=["not authorised", "QoS 0"])
def test_a_subscription_that_is_refused_or_granted_less_ends_the_bridge(
    broker: ScriptedBroker, tmp_path: Path, granted: int
) -> None:
    work = AtWork(bridge(broker, tmp_path))
    peer = broker.accept()
    peer.welcome()
    peer.grant(granted)
    with pytest.raises(RunError, match="must be allowed to subscribe to s/# with QoS 1") as raised:
        work.ended()
    assert raised.value.code == "MQTT_REFUSED"


def test_another_client_with_our_name_ends_the_bridge(broker: ScriptedBroker, tmp_path: Path) -> None:
    work = AtWork(bridge(broker, tmp_path, client_id="mine"))
    peer = broker.meet()
    peer.send(DISCONNECT << 4, bytes([TAKEN_OVER, 0]))
    with pytest.raises(RunError, match=r"stay connected as mine; .* replied: Session taken over; stop the other"):
        work.ended()


def test_a_broker_that_is_not_there_at_the_start_ends_the_bridge(tmp_path: Path) -> None:
    with scripted_broker() as gone:
        definition = bridge(gone, tmp_path)
    with pytest.raises(
        RunError, match=r"needs its broker to start; localhost:\d+ does not respond: .*refused"
    ) as raised:
        AtWork(definition).ended()
    assert raised.value.code == "MQTT_UNREACHABLE"


def test_properties_and_a_topic_that_is_no_text_are_written(broker: ScriptedBroker, tmp_path: Path) -> None:
    with at_work(bridge(broker, tmp_path / "log")):
        peer = broker.meet()
        peer.publish(1, b"1", properties=b"\x26\x00\x02id\x00\x02a7")
        peer.publish(2, b"2", topic=b"s/\xff", dup=True)
        assert peer.acknowledged(2) == [1, 2]
    first, second = sorted(lines(tmp_path / "log"), key=lambda line: line[-2:])
    assert b'"user_properties":[{"name":"id","value":"a7"}],"payload":1}' in first
    assert b'"topic":"s/\\\\xff"' in second
    assert b'"dup":true,"packet_id":2' in second


def test_messages_come_over_tls(
    tmp_path: Path, tls: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_LEAVE_S", 0.1)
    context, certificate = tls
    with scripted_broker(context) as broker, at_work(bridge(broker, tmp_path / "log", tls_ca=certificate)):
        peer = broker.meet()
        for number in range(1, 201):
            peer.publish(number, b"%d" % number)
        assert peer.acknowledged(200) == list(range(1, 201))
