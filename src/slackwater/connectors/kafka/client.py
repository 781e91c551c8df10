"""The driver's view of a cluster: its topics and their ids, their partitions, and the offsets of these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.backoff import came_true
from slackwater.base.errors import fault
from slackwater.connectors.kafka.connection import Connection

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

Place = tuple[str, int]
"""A topic and a partition of it."""

_TIMEOUT_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.02
_NO_ANSWER: Final = {"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_SSL", "_AUTHENTICATION"}
"""librdkafka's names of the errors of a cluster that is unreachable or refuses the connection."""
_QUIET: Final = {"log_level": "2"}  # we report an unavailable broker ourselves, once


def confluent() -> ModuleType:
    """Return the module `confluent_kafka`, or raise a fault that says how to install it."""
    try:
        import confluent_kafka  # noqa: PLC0415  needed only for Kafka
    except ModuleNotFoundError as error:
        raise fault("KAFKA_CLIENT_MISSING") from error
    return confluent_kafka


@dataclass(kw_only=True)
class Cluster:
    """A cluster as seen by the driver. Every call may raise confluent_kafka's KafkaException."""

    connection: Connection
    _admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        """The admin client, created on first use."""
        confluent()
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415  as above

        if self._admin is None:
            self._admin = AdminClient({**self.connection.for_librdkafka(), **_QUIET})
        return self._admin

    def topics(self, names: Iterable[str], pattern: str | None) -> dict[str, str]:
        """Return the ids of the existing topics, by name; a recreated topic has a new id."""
        module = confluent()
        wanted = list(names)
        if pattern is not None:
            wanted = [name for name in self.names() if re.fullmatch(pattern, name)]
        if not wanted:
            return {}
        asked = self.admin.describe_topics(module.TopicCollection(wanted), request_timeout=_TIMEOUT_S)
        found = {}
        for name, future in asked.items():
            try:
                described = future.result()
                # A pattern may also match Kafka's internal topics, which the connector does not read.
                if pattern is None or not described.is_internal:
                    found[name] = str(described.topic_id)
            except module.KafkaException as error:
                if error.args[0].code() != module.KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return found

    def names(self) -> list[str]:
        """Return the names of all topics."""
        return list(self.admin.list_topics(timeout=_TIMEOUT_S).topics)

    def partitions(self, topics: Iterable[str]) -> list[Place]:
        """Return the partitions of `topics`."""
        known = self.admin.list_topics(timeout=_TIMEOUT_S).topics
        return [(name, number) for name in topics if name in known for number in sorted(known[name].partitions)]

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset after the last committed record of each partition."""
        return self._offsets(places, "latest")

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset of the first available record of each partition."""
        return self._offsets(places, "earliest")

    def create_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Create a topic with one replica per partition, and wait until it is visible."""
        from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415  as above

        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        [future] = self.admin.create_topics([topic], request_timeout=_TIMEOUT_S).values()
        future.result()
        came_true(lambda: len(self.partitions([name])) >= partitions, within_s=_TIMEOUT_S, every_s=_LOOK_EVERY_S)

    def retention_ms(self, topics: Iterable[str], *, timeout_s: float = _TIMEOUT_S) -> int | None:
        """Return the shortest retention of the topics; None if all of them keep their records forever."""
        confluent()
        from confluent_kafka.admin._config import ConfigResource  # noqa: PLC0415  as above
        from confluent_kafka.cimpl import RESOURCE_TOPIC  # noqa: PLC0415  as above

        asked = self.admin.describe_configs(
            [ConfigResource(RESOURCE_TOPIC, name) for name in topics], request_timeout=timeout_s
        )
        configs = [future.result() for future in asked.values()]
        found = [int(each["retention.ms"].value) for each in configs if "delete" in each["cleanup.policy"].value]
        return min((kept_ms for kept_ms in found if kept_ms >= 0), default=None)

    def _offsets(self, places: Iterable[Place], which: str) -> dict[Place, int]:
        module = confluent()
        from confluent_kafka.admin._listoffsets import OffsetSpec  # noqa: PLC0415  as above

        spec = OffsetSpec.latest() if which == "latest" else OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # have none
        request: dict[Any, Any] = {module.TopicPartition(*place): spec for place in places}
        if not request:
            return {}
        asked = self.admin.list_offsets(
            request, isolation_level=module.IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT_S
        )
        return {(place.topic, place.partition): future.result().offset for place, future in asked.items()}


@contextmanager
def kafka_errors(servers: object) -> Iterator[None]:
    """Turn the client's exceptions into faults that name the cluster and say whether it answered at all."""
    try:
        yield
    except confluent().KafkaException as error:
        words = error.args[0].str() if error.args else str(error)
        if error.args and error.args[0].name() in _NO_ANSWER:
            raise fault("KAFKA_UNREACHABLE", servers=servers, cause=words) from error
        raise fault("KAFKA_REFUSED", servers=servers, cause=words) from error


def partition_name(place: Place) -> str:
    """Return the name of a partition in the clock, in statistics and in dead letters."""
    return f"{place[0]}/{place[1]}"
