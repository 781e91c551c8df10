"""The definition of an MQTT bridge, checked before anything is connected or written."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import refuse
from slackwater.base.folders import given_path, local_folder
from slackwater.base.secrets import Secret, shown_url
from slackwater.connectors.kafka.address import topic_at
from slackwater.connectors.kafka.connection import Connection

VERSIONS: Final = ("5", "3.1.1")
_PORT, _TLS_PORT = 1883, 8883
_LONGEST: Final = 65_535
_MOST_UNACKNOWLEDGED: Final = 65_535
_KAFKA_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, kw_only=True)
class KafkaPlace:
    """A topic of a Kafka cluster to write to."""

    connection: Connection
    topic: str

    def __str__(self) -> str:
        return f"kafka://{self.connection.servers}/{self.topic}"


@dataclass(frozen=True, kw_only=True)
class MqttBridge:
    """A bridge from an MQTT broker to a log or a Kafka topic; holds no secret values.

    `client_id` identifies the session that the broker keeps while the bridge is disconnected: another id, or another
    broker, starts a new session.
    """

    host: str
    port: int
    topics: tuple[str, ...]
    to: str | KafkaPlace
    qos: int
    client_id: str
    username: str | None
    password: Secret | None
    uses_tls: bool
    tls_ca: str | None
    version: str
    flush_every_ms: int
    max_batch: int
    partitions: int | None
    is_raw: bool

    @property
    def broker(self) -> str:
        """The broker as users write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}{' (TLS)' if self.uses_tls else ''}"

    @property
    def max_held(self) -> int:
        """The most messages held in memory: the batch being written, and the next one."""
        return min(2 * self.max_batch, _MOST_UNACKNOWLEDGED)


def mqtt_bridge(
    broker: str,
    topics: str | Sequence[str],
    to: str | os.PathLike[str],
    *,
    qos: int = 1,
    client_id: str | None = None,
    username: str | None = None,
    password: Secret | None = None,
    tls: bool = False,
    tls_ca: str | os.PathLike[str] | None = None,
    version: str = "5",
    flush_every: Duration = "1s",
    max_batch: int = 1_000,
    partitions: int | None = None,
    raw: bool = False,
) -> MqttBridge:
    """Check and return a bridge: `mqtt_bridge("host:1883", "sensors/+/temp", "data/sensors")`.

    `to` is a log's folder or `kafka://SERVERS/TOPIC`. Unless `client_id` is given, it is derived from the topics and
    the target, so that a restarted bridge finds its session.
    """
    uses_tls = tls or tls_ca is not None
    host, port = _address(broker, _TLS_PORT if uses_tls else _PORT)
    filters = (topics,) if isinstance(topics, str) else tuple(topics)
    if not filters:
        raise _unusable("topic", "at least one filter", "none", "try 'sensors/#'")
    for each in filters:
        _check_filter(each)
    if qos not in (0, 1):
        raise _unusable(
            "qos",
            "1, or 0 if messages may be lost",
            qos,
            "use 1: messages published with QoS 2 arrive with QoS 1",
        )
    if version not in VERSIONS:
        raise _unusable("version", " or ".join(VERSIONS), repr(version), "omit it to use 5")
    if not 1 <= max_batch <= _MOST_UNACKNOWLEDGED:
        raise _unusable("max_batch", f"1 to {_MOST_UNACKNOWLEDGED}", max_batch, "omit it to use 1000")
    if password is not None and not isinstance(password, Secret):
        raise refuse("SECRET_EXPECTED", what="password")
    if password is not None and username is None:
        raise _unusable("password", "given together with a username", "a password alone", "give the username as well")
    target = _target(to)
    if partitions is not None and (partitions < 1 or isinstance(target, KafkaPlace)):
        given = partitions if partitions < 1 else f"{partitions} for Kafka"
        raise _unusable("partitions", "1 or more, for a log only", given, "omit it to have one per topic")
    return MqttBridge(
        host=host,
        port=port,
        topics=filters,
        to=target,
        qos=qos,
        client_id=_client_id(client_id, filters, target),
        username=username,
        password=password,
        uses_tls=uses_tls,
        tls_ca=None if tls_ca is None else str(given_path(tls_ca)),
        version=version,
        flush_every_ms=duration_ms(flush_every, what="flush_every"),
        max_batch=max_batch,
        partitions=partitions,
        is_raw=raw,
    )


def _unusable(what: str, rule: str, got: object, remedy: str) -> Exception:
    return refuse("MQTT_BRIDGE_OPTION", what=what, rule=rule, got=got, remedy=remedy)


def _address(broker: str, default_port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{broker}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port == 0 or re.search(r"[/?#;@]", broker):
        raise _unusable("broker", "host:port", repr(shown_url(broker)), f"try localhost:{default_port}")
    return host, default_port if port is None else port


def _check_filter(topic: str) -> None:
    levels = topic.split("/")
    is_right = (
        0 < len(topic.encode("utf-8", "surrogatepass")) <= _LONGEST
        and "\x00" not in topic
        and all("#" not in level for level in levels[:-1])
        and ("#" not in levels[-1] or levels[-1] == "#")
        and all("+" not in level or level == "+" for level in levels)
    )
    if not is_right:
        raise _unusable(
            "topic",
            "a filter in which `+` is a whole level and `#` the last",
            repr(topic),
            "try 'sensors/+/temp'",
        )


def _target(to: str | os.PathLike[str]) -> str | KafkaPlace:
    if not (isinstance(to, str) and to.startswith("kafka://")):
        return local_folder(to, what="the bridge's log")
    found = topic_at(to.removeprefix("kafka://"))
    if found is None or not _KAFKA_TOPIC.fullmatch(found[1]):
        rule, remedy = "a log's folder or kafka://SERVERS/TOPIC", "try kafka://localhost:9092/sensors"
        raise _unusable("to", rule, repr(shown_url(to)), remedy)
    return KafkaPlace(connection=found[0], topic=found[1])


def _client_id(given: str | None, topics: tuple[str, ...], to: str | KafkaPlace) -> str:
    if given is not None:
        if not given or len(given.encode("utf-8", "surrogatepass")) > _LONGEST or "\x00" in given:
            raise _unusable("client_id", "a stable name", repr(given), "omit it to have one generated")
        return given
    # 23 characters, the length that every MQTT 3.1.1 broker must accept.
    told_apart_by = "\n".join([*sorted(topics), str(to)])
    return f"slackwater-{hashlib.sha256(told_apart_by.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
