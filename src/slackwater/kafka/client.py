"""What the driver asks of a cluster: which partitions there are, where they end, and which topic they belong to."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from slackwater.errors import fault
from slackwater.kafka.connection import Connection

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

Place = tuple[str, int]
"""A topic and a partition of it."""

_TIMEOUT_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.02
_NO_ANSWER: Final = {"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_SSL", "_AUTHENTICATION"}
"""librdkafka's names of what happens when nobody is there, or nobody who would talk to us."""
_QUIET: Final = {"log_level": "2"}  # we report a broker that is away, once


def confluent() -> ModuleType:
    """Return the module `confluent_kafka`, or say how to get it."""
    try:
        import confluent_kafka  # noqa: PLC0415  only who uses Kafka needs it
    except ModuleNotFoundError as error:
        raise fault("KAFKA_CLIENT_MISSING") from error
    return confluent_kafka


@dataclass(kw_only=True)
class Cluster:
    """A cluster as the driver sees it. Every call may fail with confluent_kafka's KafkaException."""

    connection: Connection
    _admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        """The admin client, made when first needed."""
        confluent()
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415  as above

        if self._admin is None:
            self._admin = AdminClient({**self.connection.for_librdkafka(), **_QUIET})
        return self._admin

    def topics(self, names: Iterable[str], pattern: str | None) -> dict[str, str]:
        """Return the ids of the topics that exist, by name; a topic that is recreated has a new id."""
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
                # Kafka's own topics match a pattern as well; the connector does not read them.
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
        """Return the offset of the first record that is still there."""
        return self._offsets(places, "earliest")

    def create_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Create a topic with one replica of each partition, and wait until it can be seen."""
        from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415  as above

        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        [future] = self.admin.create_topics([topic], request_timeout=_TIMEOUT_S).values()
        future.result()
        until = time.monotonic() + _TIMEOUT_S
        while len(self.partitions([name])) < partitions and time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)

    def retention_ms(self, topics: Iterable[str], *, timeout_s: float = _TIMEOUT_S) -> int | None:
        """Return how long the topic that keeps its records for the shortest time does so; None if all keep them."""
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
    """Turn what the client raises inside into a fault that names the cluster, and whether it answered at all."""
    try:
        yield
    except confluent().KafkaException as error:
        words = error.args[0].str() if error.args else str(error)
        if error.args and error.args[0].name() in _NO_ANSWER:
            raise fault("KAFKA_UNREACHABLE", servers=servers, cause=words) from error
        raise fault("KAFKA_REFUSED", servers=servers, cause=words) from error


def partition_name(place: Place) -> str:
    """Return what a partition is called in the clock, in statistics and in dead letters."""
    return f"{place[0]}/{place[1]}"
