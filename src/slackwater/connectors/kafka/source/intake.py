"""The driver's view of a Kafka source: its partitions, its lag, and whether its topics are still the same.

Spark's connector reads the records and keeps the offsets. Once per batch, the driver asks for what the connector does
not report: which partitions have unread records (and so are not idle), how far behind the job is, and whether a topic
was deleted and recreated, so that its offsets would only look like a continuation.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from slackwater.base.errors import RunError, counted, fault, listed, near_miss, notice
from slackwater.base.stored import DamageError, shaped
from slackwater.connectors.intake import Intake, Lag, Look, ReadOffsets, StreamPlace
from slackwater.connectors.kafka.client import Cluster, Place, confluent, partition_name
from slackwater.connectors.kafka.presence import warn_of
from slackwater.connectors.kafka.source.offsets import check_offsets_exist

if TYPE_CHECKING:
    from slackwater.connectors.kafka.source.definition import KafkaSource


class KafkaIntake(Intake):
    """Watches the topics of one stream, and commits the job's progress to its consumer group."""

    def __init__(self, source: KafkaSource, place: StreamPlace) -> None:
        self.source = source
        self.stream = place.stream
        self.group = source.group or place.pipeline
        self.cluster = Cluster(connection=source.connection)
        self._progress, self._number = place.progress, place.number
        self._notes = f"kafka-{place.stream}.json"
        """The file with the ids of the topics. Users may delete it, to accept topics that were recreated."""
        self._processed: dict[Place, int] = {}
        """The offsets up to which batches have read, as of the last look."""
        self._ends: dict[Place, int] = {}
        """The ends of the partitions when a bounded run started; its query, which starts later, reads no less."""
        self._consumer: Any = None
        self._places: set[Place] = set()
        self._last: dict[str, Lag] = {}
        self._looked = 0.0
        self._reported_lost: dict[Place, int] = {}
        self._is_away = False

    def check(self) -> None:
        """Raise if the cluster or a topic is missing, a topic was recreated, or unread records are lost.

        If no batch of the stream has read anything yet, also raise if the given starting offsets do not exist: the
        connector would look for them forever.
        """
        processed = {} if self._progress is None else self._read_up_to(self._progress.committed_batch())
        self._check_beginning()
        try:
            self._check_topics()
            if self.source.offsets is not None and not processed:
                check_offsets_exist(self.cluster, self.source.offsets, stream=self.stream)
            self._places = set(self.cluster.partitions(self._ids()))
            self._check_loss(processed)
        except confluent().KafkaException as error:
            words = error.args[0].str()
            raise fault("KAFKA_UNREACHABLE", servers=self.source.connection, cause=words) from error

    def partitions(self) -> frozenset[str]:
        """Return the partitions of the topics, as of the last check."""
        return frozenset(map(partition_name, self._places))

    def open(self) -> None:
        """Check the source again, as of now."""
        self.check()

    def loss(self) -> RunError | None:
        """Return the error that `check` raises, if any."""
        try:
            self.check()
        except RunError as reason:
            return reason
        return None

    def publish(self, *, all_of_it: bool = False) -> None:
        """Record where a bounded run will end."""
        if all_of_it:
            self._ends = self.cluster.ends(self._places)

    def brings(self) -> bool:
        """Return whether a partition has unread records before the end of a bounded run."""
        return any(self._processed.get(place, 0) < end for place, end in self._ends.items())

    def look(self, batch: int, partitions: Collection[str]) -> Look:
        """Compare what was read with what exists; if the cluster does not answer, every partition has a backlog."""
        processed = self._processed = self._read_up_to(batch)
        try:
            self._check_topics()
            places = set(self.cluster.partitions(self._ids())) | set(processed)
            ends = self.cluster.ends(places)
            self._check_loss(processed)
            if self._is_away:
                self._is_away = False
                warn_of(notice("KAFKA_BACK", servers=self.source.connection))
        except confluent().KafkaException as error:
            if not self._is_away:
                self._is_away = True
                warn_of(notice("KAFKA_AWAY", servers=self.source.connection, cause=error.args[0].str()))
            names = frozenset(map(partition_name, {*self._places, *processed}))
            return Look(known=names, backlog=names, missing=frozenset(partitions) - names, lag=self._last)
        if fresh := sorted(map(partition_name, places - self._places)):
            warn_of(notice("KAFKA_NEW_PARTITIONS", stream=self.stream, partitions=listed(fresh)))
        self._places = places
        behind = {partition_name(place): end - processed.get(place, 0) for place, end in ends.items()}
        known = frozenset(map(partition_name, places))
        return Look(
            known=known,
            backlog=frozenset(name for name, records in behind.items() if records > 0),
            missing=frozenset(partitions) - known,
            is_complete=True,
            lag=self._lag(behind),
        )

    def commit(self) -> None:
        """Commit the job's position to the consumer group, for Kafka's own tools; nothing depends on it."""
        module = confluent()
        if self._consumer is None:
            conf = {"group.id": self.group, "enable.auto.commit": False, "log_level": "2"}
            self._consumer = module.Consumer({**self.source.connection.for_librdkafka(), **conf})
        offsets = [module.TopicPartition(*place, offset) for place, offset in self._processed.items()]
        if offsets:
            self._consumer.commit(offsets=offsets, asynchronous=True)
            self._consumer.poll(0)

    def close(self) -> None:
        """Release the connection to the cluster."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def reads(self, batch: int, *, rows_before: int) -> dict[str, ReadOffsets]:  # noqa: ARG002  as in the contract
        """Return the offsets that a batch reads, from Spark's log."""
        before = self._read_up_to(batch - 1) if batch > 0 else self._beginning()
        return {
            partition_name(place): (before.get(place, 0), end - 1)
            for place, end in self._read_up_to(batch).items()
            if end > before.get(place, 0)
        }

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

    def _read_up_to(self, batch: int) -> dict[Place, int]:
        """Return the offsets up to which a batch has read; Spark's log has one line per source."""
        if self._progress is None or batch < 0:
            return {}
        lines = self._progress.source_offsets(batch)
        with self._progress.readable(self._progress.path / "offsets" / str(batch)):
            return processed_offsets(lines[self._number]) if self._number < len(lines) else {}

    def _check_beginning(self) -> None:
        """Raise if Spark has begun the first batch and no longer knows where: it would choose other offsets."""
        if self._progress is None or not self._progress.is_amid_batch() or self._progress.next_batch() > 0:
            return
        first = self._progress.path / "sources" / str(self._number) / "0"
        with self._progress.readable(first):
            if not first.exists():
                raise DamageError("it is missing")

    def _beginning(self) -> dict[Place, int]:
        """Return the offsets at which the first batch begins, from Spark's log of the source."""
        if self._progress is None:
            return {}
        first = self._progress.path / "sources" / str(self._number) / "0"
        return processed_offsets(first.read_text().splitlines()[-1])

    def _ids(self) -> dict[str, str]:
        if self._progress is None or not self._progress.files.at(self._notes).exists():
            return {}
        known: dict[str, str] = self._progress.files.read_json(self._notes, dict[str, str])
        return known

    def _check_loss(self, processed: dict[Place, int]) -> None:
        """Report records that were lost before a batch read them; by default, raise."""
        begins = self.cluster.begins(self._places & set(processed))
        gone = {place: (processed[place], begin) for place, begin in begins.items() if begin > processed[place]}
        for place in [place for place, (_, begin) in gone.items() if self._reported_lost.get(place) == begin]:
            del gone[place]
        if not gone:
            return
        total = sum(begin - before for before, begin in gone.values())
        facts = ", ".join(f"{partition_name(p)} offsets {a:,} to {b - 1:,}" for p, (a, b) in sorted(gone.items()))
        if self.source.on_data_loss == "stop":
            raise fault("KAFKA_DATA_LOSS", stream=self.stream, count=counted(total, "record"), facts=facts)
        self._reported_lost |= {place: begin for place, (_, begin) in gone.items()}
        warn_of(notice("KAFKA_LOST", stream=self.stream, count=counted(total, "record"), facts=facts))

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
                notes = None if self._progress is None else self._progress.files.at(self._notes)
                raise fault("KAFKA_TOPIC_RECREATED", topic=name, stream=self.stream, notes=notes)
        if self._progress is not None and found != known:
            self._progress.files.write_json(self._notes, found)


def processed_offsets(line: str) -> dict[Place, int]:
    """Return the offsets up to which a batch reads, from the connector's line in Spark's offset log."""
    if line == "-":
        return {}
    found: dict[str, dict[str, int]] = shaped(json.loads(line), dict[str, dict[str, int]])
    return {(topic, int(part)): offset for topic, parts in found.items() for part, offset in parts.items()}
