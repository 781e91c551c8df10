"""Checks before the first batch: topics, permissions, and the broker's limit on transactions."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.backoff import came_true
from slackwater.base.errors import RunError, fault, near_miss
from slackwater.connectors.kafka.client import confluent
from slackwater.connectors.kafka.sink.errors import SlotTarget
from slackwater.connectors.sink import Slot, Unavailable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

    from slackwater.connectors.kafka.sink.definition import KafkaSink

MARKS_PARTITIONS: Final = 17
"""One for the driver's slot and sixteen for the executors'; more are added when a slot without one is opened."""
_STEP: Final = 16
_BROKERS_OWN: Final = -1
"""Use the broker's default replication factor."""
_TIMEOUT_S: Final = 15.0
_KNOCK_S: Final = 2.0
_SILENT: Final = ("_TIMED_OUT", "_TRANSPORT", "_SSL", "_RESOLVE", "_ALL_BROKERS_DOWN")
_DENIED: Final = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


def prepare(sink: KafkaSink, slot: Slot) -> None:
    """Check everything that can be checked before the first batch, and create the topics that were asked for."""
    is_open = _knock(sink.connection.servers)
    topics = Topics(sink.target(slot))
    with topics.translated(must_answer=is_open):
        found = topics.find(sink.topic)
    with topics.translated():
        if found is None and slot.delivered_before:
            raise fault("KAFKA_SINK_TOPIC_GONE", topic=sink.topic, servers=sink.connection)
        if found is None and sink.create is not None:
            topics.create(sink.topic, sink.create, {})
            found = topics.find(sink.topic)
        if found is None:
            hint = near_miss(sink.topic, topics.names())
            raise fault("KAFKA_SINK_TOPIC_MISSING", topic=sink.topic, servers=sink.connection, hint=hint)
        topics.check_rights(found, "WRITE")
        if sink.delivery == "exactly_once":
            topics.check_timeout()
            _prepare_marks(topics, sink.marks(slot))


def _knock(servers: str) -> bool:
    """Return whether a server accepts connections; raises `Unavailable` if all refuse, which the client would wait out.

    A server that neither accepts nor refuses in time is left to the client, which waits longer.
    """
    answers, until = [], time.monotonic() + _KNOCK_S
    for server in servers.split(","):
        host, _, port = server.strip().rpartition("://")[2].rpartition(":")
        left_s = until - time.monotonic()
        if left_s <= 0 or not port.isdecimal():
            return False
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=left_s).close()
        except ConnectionRefusedError:
            answers.append(f"{server.strip()} refuses connections")
        except socket.gaierror as error:
            answers.append(f"{host} is an unknown host ({error.strerror})")
        except (OSError, OverflowError):
            return False
        else:
            return True
    raise Unavailable(", ".join(answers))


def grow_marks(sink: KafkaSink, slot: Slot) -> None:
    """Make sure that the marks topic has a partition for the slot."""
    topics, name = Topics(sink.target(slot)), sink.marks(slot)
    steps = -(-(slot.number + 1 - MARKS_PARTITIONS) // _STEP)
    with topics.translated():
        found = topics.find(name)
        if found is not None and len(found.partitions) <= slot.number:
            topics.grow(name, MARKS_PARTITIONS + steps * _STEP, least=slot.number + 1)


def _prepare_marks(topics: Topics, name: str) -> None:
    found = topics.find(name)
    if found is None:
        topics.create(name, MARKS_PARTITIONS, {"cleanup.policy": "compact"})
        return
    topics.check_rights(found, "WRITE", "READ")
    policy = topics.setting("TOPIC", name, "cleanup.policy")
    if policy is not None and policy != "compact":
        raise fault("KAFKA_SINK_MARKS_POLICY", topic=name, got=policy)
    if len(found.partitions) < MARKS_PARTITIONS:
        topics.grow(name, MARKS_PARTITIONS, least=MARKS_PARTITIONS)


class Topics:
    """The topics of the cluster, as the driver can see and create them."""

    def __init__(self, target: SlotTarget) -> None:
        self._target = target
        self._heard: list[KafkaError] = []
        settings = {**target.connection.for_librdkafka(), "log_level": 2, "error_cb": self._heard.append}
        self._admin: AdminClient = admin_module().AdminClient(settings)

    @contextmanager
    def translated(self, *, must_answer: bool = False) -> Iterator[None]:
        """Translate the client's exceptions into ours, with the reason why a server does not answer.

        With `must_answer`, the server accepts connections, so one that stays silent does not count as unavailable.
        """
        module = confluent()
        try:
            yield
        except module.KafkaException as error:
            self._admin.poll(0)
            for heard in self._heard:
                if heard.name() == "_AUTHENTICATION":
                    raise self._target.meaning(heard) from error
            if must_answer and error.args[0].name() in _SILENT:
                raise self._no_answer(error.args[0]) from error
            raise self._target.meaning(error.args[0]) from error

    def _no_answer(self, error: KafkaError) -> RunError:
        """Return the fault for a server that connects but does not answer; the first error is the best clue."""
        causes = [heard.str() for heard in self._heard if heard.name() != "_ALL_BROKERS_DOWN"]
        way = self._target.connection
        security = f"{'TLS' if way.tls else 'no TLS'}, {'SASL' if way.sasl else 'no SASL'}"
        facts = {"servers": way, "output": self._target.output, "security": security}
        return fault("KAFKA_SINK_NO_ANSWER", cause=causes[0] if causes else error.str(), **facts)

    def find(self, name: str) -> Any | None:  # noqa: ANN401  the client's own type
        """Return the description of a topic; None if it does not exist."""
        module = confluent()
        names = module.TopicCollection([name])
        [asked] = self._admin.describe_topics(
            names, include_authorized_operations=True, request_timeout=_TIMEOUT_S
        ).values()
        try:
            return asked.result()
        except module.KafkaException as error:
            if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                raise
            return None

    def names(self) -> list[str]:
        """Return the visible topics."""
        return list(self._admin.list_topics(timeout=_TIMEOUT_S).topics)

    def create(self, name: str, partitions: int, settings: dict[str, str]) -> None:
        """Create a topic, unless another driver was faster, and wait until it is visible."""
        module = confluent()
        topic = admin_module().NewTopic(name, partitions, _BROKERS_OWN, config=settings)
        [asked] = self._admin.create_topics([topic], request_timeout=_TIMEOUT_S).values()
        try:
            asked.result()
        except module.KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
        self._await(name, partitions)

    def grow(self, name: str, partitions: int, *, least: int) -> None:
        """Add partitions to a topic, unless another slot was faster, and wait until they are visible."""
        module = confluent()
        wanted = admin_module().NewPartitions(name, partitions)
        [asked] = self._admin.create_partitions([wanted], request_timeout=_TIMEOUT_S).values()
        try:
            asked.result()
        except module.KafkaException as error:
            if error.args[0].name() != "INVALID_PARTITIONS":
                raise
        self._await(name, least)

    def check_rights(self, found: Any, *needed: str) -> None:  # noqa: ANN401  the client's own type
        """Raise a fault if we lack a permission on a topic that the sink needs."""
        rights = {right.name for right in found.authorized_operations or ()}
        lacking = [name for name in needed if name not in rights and "ALL" not in rights]
        if rights and lacking:
            words = f"denies {' and '.join(lacking)} on topic `{found.name}`"
            raise fault("KAFKA_SINK_DENIED", what=words, **self._facts())

    def check_timeout(self) -> None:
        """Raise a fault if the broker's limit on transactions is below ours; one that hides it will refuse later."""
        brokers = self._admin.list_topics(timeout=_TIMEOUT_S).brokers
        limits = [self.setting("BROKER", str(number), "transaction.max.timeout.ms") for number in brokers]
        limit = min((int(each) for each in limits if each is not None), default=None)
        if limit is not None and self._target.timeout_ms > limit:
            facts = {"got": self._target.timeout_ms, "servers": self._target.connection}
            raise fault("KAFKA_SINK_TIMEOUT", limit=f"{limit} ms", **facts)

    def setting(self, kind: str, name: str, setting: str) -> str | None:
        """Return a setting of a topic or a broker; None if we may not read it."""
        module = confluent()
        resource = admin_module().ConfigResource(admin_module().ResourceType[kind], name)
        [asked] = self._admin.describe_configs([resource], request_timeout=_TIMEOUT_S).values()
        try:
            return str(asked.result()[setting].value)
        except module.KafkaException as error:
            if error.args[0].name() not in _DENIED:
                raise
            return None

    def _facts(self) -> dict[str, object]:
        target = self._target
        return {"topic": target.topic, "servers": target.connection, "output": target.output}

    def _is_there(self, name: str, partitions: int) -> bool:
        """Return whether a topic is known and every partition has a leader that answers."""
        module = confluent()
        found = self.find(name)
        if found is None or len(found.partitions) < partitions:
            return False
        latest = admin_module().OffsetSpec.latest()
        places = {module.TopicPartition(name, number): latest for number in range(partitions)}
        asked = self._admin.list_offsets(places, request_timeout=_TIMEOUT_S)
        errors = [future.exception() for future in asked.values()]
        return not any(errors)

    def _await(self, name: str, partitions: int) -> None:
        if not came_true(lambda: self._is_there(name, partitions), within_s=_TIMEOUT_S):
            raise Unavailable(f"topic {name} was created but is not visible after {_TIMEOUT_S:.0f} s")


def admin_module() -> ModuleType:
    """Return the module `confluent_kafka.admin`, which its package does not import itself."""
    confluent()
    from confluent_kafka import admin  # noqa: PLC0415  only Kafka users need it

    return admin
