"""The driver's eye on a Kafka source: its partitions, its lag, and whether its topics are still the same ones.

Spark's connector reads the records and keeps the offsets. What it does not say is asked here once a batch:
which partitions hold records that no batch has read (they are not idle), how far behind the job is, and
whether a topic was deleted and made anew, whose offsets would only look like a continuation.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slackwater.errors import counted, fault, near_miss, render
from slackwater.ground.durable import write_durably
from slackwater.ground.stored import damaged, read_stored, shaped
from slackwater.kafka.client import Cluster, Place, confluent, partition_name
from slackwater.kafka.presence import warn_of
from slackwater.sources.kafka.definition import KafkaSource
from slackwater.sources.kafka.offsets import check_offsets_exist


@dataclass(frozen=True, kw_only=True)
class Lag:
    """How far a partition is behind: committed records that no batch has read yet."""

    records: int
    per_second: float = 0.0
    """How fast that grows; below zero while the job catches up."""


@dataclass(frozen=True, kw_only=True)
class KafkaLook:
    """What one look at a source gave."""

    known: frozenset[str]
    backlog: frozenset[str]
    lag: dict[str, Lag]


@dataclass(kw_only=True)
class KafkaWatch:
    """Watches the topics of one stream, and commits the job's progress to its consumer group."""

    stream: str
    source: KafkaSource
    group: str
    notes: Path
    """Where the ids of the topics are kept."""
    cluster: Cluster = field(init=False)
    _consumer: Any = None
    _places: set[Place] = field(default_factory=set)
    _last: dict[str, Lag] = field(default_factory=dict)
    _looked: float = 0.0
    _said_lost: dict[Place, int] = field(default_factory=dict)
    _is_away: bool = False

    def __post_init__(self) -> None:
        self.cluster = Cluster(connection=self.source.connection)

    def check(self, processed: dict[Place, int]) -> None:
        """Refuse to go on without the cluster, without the topics, on topics made anew, or with records gone.

        A stream of which no batch has read anything yet may also have been told to start at offsets that are
        not there; the connector would look for them for ever.
        """
        try:
            self._check_topics()
            if self.source.offsets is not None and not processed:
                check_offsets_exist(self.cluster, self.source.offsets, stream=self.stream)
            self._places = set(self.cluster.partitions(self._ids()))
            self._check_loss(processed)
        except confluent().KafkaException as error:
            words = error.args[0].str()
            raise fault("KAFKA_UNREACHABLE", servers=self.source.connection, cause=words) from error

    def look(self, processed: dict[Place, int]) -> KafkaLook:
        """Compare what was read with what is there; a cluster that does not answer has a backlog everywhere."""
        try:
            self._check_topics()
            places = set(self.cluster.partitions(self._ids())) | set(processed)
            ends = self.cluster.ends(places)
            self._check_loss(processed)
            if self._is_away:
                self._is_away = False
                warn_of("KAFKA_BACK", render("KAFKA_BACK", servers=self.source.connection))
        except confluent().KafkaException as error:
            if not self._is_away:
                self._is_away = True
                warn_of("KAFKA_AWAY", render("KAFKA_AWAY", servers=self.source.connection, cause=error.args[0].str()))
            names = frozenset(map(partition_name, {*self._places, *processed}))
            return KafkaLook(known=names, backlog=names, lag=self._last)
        if fresh := sorted(map(partition_name, places - self._places)):
            words = render("KAFKA_NEW_PARTITIONS", stream=self.stream, partitions=", ".join(fresh))
            warn_of("KAFKA_NEW_PARTITIONS", words)
        self._places = places
        behind = {partition_name(place): end - processed.get(place, 0) for place, end in ends.items()}
        return KafkaLook(
            known=frozenset(map(partition_name, places)),
            backlog=frozenset(name for name, records in behind.items() if records > 0),
            lag=self._lag(behind),
        )

    def ends(self) -> dict[Place, int]:
        """Return where each partition ends now."""
        return self.cluster.ends(self._places)

    def commit(self, processed: dict[Place, int]) -> None:
        """Tell the consumer group where the job is, for Kafka's own tools; nothing depends on it."""
        module = confluent()
        if self._consumer is None:
            conf = {"group.id": self.group, "enable.auto.commit": False, "log_level": "2"}
            self._consumer = module.Consumer({**self.source.connection.for_librdkafka(), **conf})
        offsets = [module.TopicPartition(*place, offset) for place, offset in processed.items()]
        if offsets:
            self._consumer.commit(offsets=offsets, asynchronous=True)
            self._consumer.poll(0)

    def close(self) -> None:
        """Let go of the cluster."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _lag(self, behind: dict[str, int]) -> dict[str, Lag]:
        now = time.monotonic()
        took = now - self._looked
        self._last = {
            name: Lag(
                records=max(0, records),
                per_second=(records - self._last[name].records) / took if name in self._last else 0.0,
            )
            for name, records in behind.items()
        }
        self._looked = now
        return self._last

    def _ids(self) -> dict[str, str]:
        if not self.notes.exists():
            return {}
        checkpoint = self.notes.parent.parent
        known: dict[str, str] = read_stored(self.notes, dict[str, str], damaged(checkpoint))
        return known

    def _check_loss(self, processed: dict[Place, int]) -> None:
        """Say which records are gone that no batch has read: by default that is the end."""
        begins = self.cluster.begins(self._places & set(processed))
        gone = {place: (processed[place], begin) for place, begin in begins.items() if begin > processed[place]}
        for place in [place for place, (_, begin) in gone.items() if self._said_lost.get(place) == begin]:
            del gone[place]
        if not gone:
            return
        total = sum(begin - before for before, begin in gone.values())
        facts = ", ".join(f"{partition_name(p)} offsets {a:,} to {b - 1:,}" for p, (a, b) in sorted(gone.items()))
        if self.source.on_data_loss == "stop":
            raise fault("KAFKA_DATA_LOSS", stream=self.stream, count=counted(total, "record"), facts=facts)
        self._said_lost |= {place: begin for place, (_, begin) in gone.items()}
        words = render("KAFKA_LOST", stream=self.stream, count=counted(total, "record"), facts=facts)
        warn_of("KAFKA_LOST", words)

    def _check_topics(self) -> None:
        known = self._ids()
        found = self.cluster.topics({*self.source.topics, *known}, None)
        if self.source.pattern is not None:
            found |= self.cluster.topics((), self.source.pattern)
        lost = sorted({*self.source.topics, *known} - set(found))
        if lost:
            named = ", ".join(f"`{name}`{near_miss(name, self.cluster.names())}" for name in lost)
            raise fault("KAFKA_TOPIC_MISSING", topics=named, servers=self.source.connection.servers)
        for name, topic_id in known.items():
            if found[name] != topic_id:
                raise fault("KAFKA_TOPIC_RECREATED", topic=name, stream=self.stream, notes=self.notes)
        if found != known:
            write_durably(self.notes, json.dumps(found))


def processed_offsets(line: str) -> dict[Place, int]:
    """Return the offsets up to which a batch reads, from the connector's line in Spark's offset log."""
    if line == "-":
        return {}
    found: dict[str, dict[str, int]] = shaped(json.loads(line), dict[str, dict[str, int]])
    return {(topic, int(part)): offset for topic, parts in found.items() for part, offset in parts.items()}
