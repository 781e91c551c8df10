"""A single connection to an MQTT broker, from CONNECT to its end; each attempt is a new `Link`.

The client library runs no thread here: everything happens in `turn`, in the caller's thread. So a message is read only
when there is room for it; when there is none, TCP holds back the broker.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Final

from slackwater.base.errors import RunError, fault
from slackwater.connectors.mqtt.definition import MqttBridge
from slackwater.connectors.mqtt.messages import Message

_KEEPALIVE_S: Final = 60
_ANSWER_S: Final = 10.0
_FOR_EVER: Final = 0xFFFF_FFFF
_TAKEN_OVER: Final = 0x8E
_OTHER_VERSION: Final = 0x84
_IS_FAILURE: Final = 0x80
_PACKETS_A_TURN: Final = 500
_LEAVE_S: Final = 5.0
_GOODBYE: Final = b"\xe0\x00"
"""DISCONNECT, in both versions of MQTT. The library's own method closes the socket immediately."""
_UNREAD: Final = 1 << 16


def paho() -> ModuleType:
    """Return the module `paho.mqtt.client`, or raise a fault that says how to install it."""
    try:
        import paho.mqtt.client  # noqa: PLC0415  needed only for MQTT
    except ModuleNotFoundError as error:
        raise fault("MQTT_CLIENT_MISSING") from error
    return paho.mqtt.client


class Link:
    """A connection, and its messages that are not acknowledged yet.

    `is_answered` is true once the broker has accepted the connection, `is_resumed` if it still had the session, and
    `is_up` once the subscriptions are granted as well. `lost` is the reason why the connection ended. `refusal` is the
    error if the broker refused; `may_retry` is whether another attempt might succeed, as with a broker that is still
    starting.
    """

    def __init__(self, definition: MqttBridge, *, subscribes: bool = True) -> None:
        """Connect; with `subscribes`, subscribe even if the broker still has the session.

        Raises OSError if the broker cannot be reached.
        """
        self.is_up = False
        self.lost: str | None = None
        self.refusal: RunError | None = None
        self.may_retry = False
        self.is_answered = self.is_resumed = False
        self._definition = definition
        self._subscribes = subscribes
        self._waiting: dict[int, Message] = {}
        self._on_message: Callable[[Message], None] = _nobody
        self._read = 0
        self._began = time.monotonic()
        self._client = self._make_client()
        self._open()

    def turn(
        self,
        wake: int,
        timeout_s: float,
        *,
        on_message: Callable[[Message], None],
        may_read: Callable[[], bool],
    ) -> None:
        """Wait for network activity, a byte on `wake` or the timeout, and process what has arrived."""
        self._on_message = on_message
        socket = self._client.socket()
        if socket is None:
            self._end("the connection is closed")
            return
        is_reading = may_read()
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        # Even without requested events, `poll` reports a lost connection.
        wanted = (select.POLLIN if is_reading else 0) | (select.POLLOUT if self._client.want_write() else 0)
        poll.register(socket, wanted)
        has_more = is_reading and hasattr(socket, "pending") and socket.pending() > 0  # decrypted, not on the wire
        events = dict(poll.poll(0 if has_more else max(0.0, timeout_s) * 1000)).get(socket.fileno(), 0)
        if events & select.POLLOUT:
            self._client.loop_write()
        if has_more or events & ~select.POLLOUT:
            self._read_packets(may_read)
        if self.lost is None:
            self._client.loop_misc()
        if self.lost is None and not self.is_answered and time.monotonic() - self._began > _ANSWER_S:
            hint = " (a broker that supports only MQTT 3.1.1 may not respond: try --mqtt-version 3.1.1)"
            self._end(f"no response in {_ANSWER_S:g} s{hint if self._definition.version == '5' else ''}")

    def acknowledge(self, message: Message) -> bool:
        """Acknowledge a message; False if it did not arrive on this connection, or was sent again since.

        A packet id identifies a message only until it is acknowledged, and only on its connection; on any other, it
        might be that of a message that is not durable yet.
        """
        if self.lost is not None or self._waiting.get(message.packet_id) is not message:
            return False
        del self._waiting[message.packet_id]
        self._client.ack(message.packet_id, message.qos)
        return self.lost is None

    def close(self) -> None:
        """Send pending packets, above all acknowledgements, and disconnect; the broker keeps the session."""
        patience = time.monotonic() + _LEAVE_S
        while self.lost is None and self._client.want_write() and time.monotonic() < patience:
            poll = select.poll()
            poll.register(self._client.socket(), select.POLLOUT)
            poll.poll(100)
            self._client.loop_write()
        if self.lost is None:
            self._take_leave(patience)
        self._end("closed")

    def _take_leave(self, patience: float) -> None:
        """Send DISCONNECT, and keep reading until the broker closes the connection.

        Closing a socket with unread messages resets the connection, and the broker may then discard acknowledgements
        that it has not read: those messages would be sent again.
        """
        socket = self._client.socket()
        # An error here causes duplicates at most, and nothing could be done about it.
        with contextlib.suppress(OSError):
            socket.settimeout(max(0.01, patience - time.monotonic()))
            socket.sendall(_GOODBYE)
            while time.monotonic() < patience and socket.recv(_UNREAD):
                pass

    def _make_client(self) -> Any:  # noqa: ANN401  the module is imported on demand
        mqtt, definition = paho(), self._definition
        is_five = definition.version == "5"
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=definition.client_id,
            clean_session=None if is_five else False,
            protocol=mqtt.MQTTv5 if is_five else mqtt.MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.connect_timeout = _ANSWER_S
        if definition.username is not None:
            password = definition.password
            client.username_pw_set(definition.username, None if password is None else password.reveal())
        if definition.uses_tls:
            client.tls_set(ca_certs=definition.tls_ca)
        client.on_connect = self._connected
        client.on_subscribe = self._subscribed
        client.on_disconnect = self._disconnected
        client.on_message = self._arrived
        return client

    def _open(self) -> None:
        from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415  as `paho`
        from paho.mqtt.properties import Properties  # noqa: PLC0415  optional

        definition = self._definition
        asked: dict[str, Any] = {}
        if definition.version == "5":
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # has no types
            properties.SessionExpiryInterval = _FOR_EVER
            properties.ReceiveMaximum = definition.max_held
            asked = {"clean_start": False, "properties": properties}
        self._client.connect(definition.host, definition.port, keepalive=_KEEPALIVE_S, **asked)

    def _connected(self, _client: object, _data: object, flags: Any, reason: Any, _properties: object) -> None:  # noqa: ANN401  paho's
        if reason.is_failure:
            is_version = reason.value == _OTHER_VERSION and self._definition.version == "5"
            remedy = "use --mqtt-version 3.1.1" if is_version else "check username, password, client id and permissions"
            self.refusal, self.may_retry = self._refused("connect", reason, remedy), True
            self._end(str(reason))
            return
        self.is_answered = True
        self.is_resumed = bool(flags.session_present)
        if self.is_resumed and not self._subscribes:
            self.is_up = True
            return
        definition = self._definition
        if definition.version == "5":
            from paho.mqtt.subscribeoptions import SubscribeOptions  # noqa: PLC0415  as `paho`

            # Request retained messages only with a new subscription, not with every connection.
            options = SubscribeOptions(qos=definition.qos, retainHandling=1)
            self._client.subscribe([(topic, options) for topic in definition.topics])
        else:
            self._client.subscribe([(topic, definition.qos) for topic in definition.topics])

    def _subscribed(self, _client: object, _data: object, _mid: int, reasons: list[Any], _properties: object) -> None:
        for topic, reason in zip(self._definition.topics, reasons, strict=True):
            if reason.value < self._definition.qos or reason.value >= _IS_FAILURE:
                remedy = "check the user's permissions, or use --qos 0, which may lose messages"
                self.refusal = self._refused(f"subscribe to {topic} with QoS {self._definition.qos}", reason, remedy)
                self._end(str(reason))
                return
        self.is_up = True

    def _disconnected(self, _client: object, _data: object, _flags: object, reason: Any, _properties: object) -> None:  # noqa: ANN401  paho's
        if reason.value == _TAKEN_OVER:
            remedy = "stop the other client, or give each its own --client-id"
            self.refusal = self._refused(f"stay connected as {self._definition.client_id}", reason, remedy)
        self._end(str(reason))

    def _arrived(self, _client: object, _data: object, given: Any) -> None:  # noqa: ANN401  paho's
        try:
            topic = given.topic
        except UnicodeDecodeError:  # a broker should reject it; it must not block the messages after it
            topic = bytes(given._topic).decode("utf-8", "backslashreplace")  # noqa: SLF001  the only access to its bytes
        message = Message(
            topic=topic,
            payload=bytes(given.payload),
            qos=given.qos,
            retain=bool(given.retain),
            dup=bool(given.dup),
            packet_id=given.mid,
            received_at=datetime.now(UTC),
            user_properties=tuple(getattr(given.properties, "UserProperty", ())),
        )
        if message.qos:
            self._waiting[message.packet_id] = message
        self._read += 1
        self._on_message(message)

    def _read_packets(self, may_read: Callable[[], bool]) -> None:
        """Read while messages arrive and there is room: a poll per message would cost more than the message."""
        for _ in range(_PACKETS_A_TURN):
            before = self._read
            self._client.loop_read()
            if self._read == before or self.lost is not None or not may_read():
                return

    def _end(self, cause: str) -> None:
        if self.lost is None:
            self.lost, self.is_up = cause, False
            self._waiting.clear()
            socket = self._client.socket()
            if socket is not None:
                socket.close()

    def _refused(self, wanted: str, cause: object, remedy: str) -> RunError:
        return fault("MQTT_REFUSED", wanted=wanted, broker=self._definition.broker, cause=cause, remedy=remedy)


def _nobody(_message: Message) -> None:
    raise AssertionError("messages are read in `turn` alone")
