"""The Kafka sink as users define it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

import polars as pl

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import refuse
from slackwater.connectors.kafka.connection import Connection, Sasl, Tls, connection
from slackwater.connectors.kafka.sink.errors import SlotTarget
from slackwater.connectors.kafka.sink.names import identity_of
from slackwater.connectors.kafka.sink.options import DEFAULT_TIMEOUT_MS, MOST_BYTES, TIMEOUT, Option, checked_options
from slackwater.connectors.kafka.sink.preparing import prepare
from slackwater.connectors.kafka.sink.records import Header, Records, RecordTrial, ValueFormat, check_columns
from slackwater.connectors.kafka.sink.writing import open_slot
from slackwater.connectors.sink import EVERYTHING, Change, Delivery, Sink, SinkWriter, Slot, Trial
from slackwater.connectors.sink_options import check_delivery, check_flags, check_result_keys
from slackwater.formats.base import Format

Partitioner = Literal["murmur2_random", "consistent", "random"]

_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, kw_only=True, eq=False)
class KafkaSink(Sink):
    """A sink that writes an output's rows as records of a topic."""

    for_retractions: ClassVar[str] = "tombstones=True sends records without a value, changelog=True keeps them as rows"
    shown_options: ClassVar[tuple[str, ...]] = (
        "key",
        "value",
        "headers",
        "partitioner",
        "changelog",
        "tombstones",
        "create",
        "marks_topic",
        "options",
    )
    connection: Connection
    topic: str
    key: tuple[str, ...] = ()
    value: ValueFormat | None = None
    """None means JSON."""
    headers: tuple[tuple[str, Header], ...] = ()
    partitioner: Partitioner = "murmur2_random"
    changelog: bool = False
    tombstones: bool = False
    delivery: Delivery = "exactly_once"
    has_slots: bool = True
    create: int | None = None
    """The number of partitions to create a missing topic with; None does not create it."""
    marks_topic: str | None = None
    options: Mapping[str, Option]

    @property
    def name(self) -> str:
        """The topic, independent of its brokers."""
        return f"kafka {self.topic}"

    def replaced_by(self, slot: Slot) -> tuple[str, ...]:
        """Return the records' key if it identifies results, not just a partition: compacted topics keep one per key."""
        is_table = self.tombstones or (slot.identity is not None and {*slot.identity.bounds} & {*self.key})
        return self.key if is_table and not self.changelog else ()

    def check(self, slot: Slot) -> None:
        """Reject an output without the columns of the key or the headers, or one that `value` cannot encode."""
        check_columns(self, slot)
        if isinstance(self.value, Format):
            Records.of(self, slot)
        if self.tombstones:
            check_result_keys("key", self.key, slot)

    def trial(self, slot: Slot) -> Trial:
        """Return the check for rows that cannot become records."""
        most = str(self.options.get("message.max.bytes", ""))
        most_bytes = int(most) if most.isdecimal() else MOST_BYTES
        headers = [(name, str(header)) for name, header in self.headers]
        value = "json" if self.value is None else f"{type(self.value).__name__} {self.value}"
        return Trial(
            rule=f"{self.key} {self.tombstones} {value} {headers} {most_bytes}",
            check=RecordTrial(sink=self, slot=slot, most_bytes=most_bytes),
        )

    def prepare(self, slot: Slot) -> None:
        """Check that rows can be written as records, that the topics exist, and that we may write to them."""
        Records.of(self, slot).announce()
        prepare(self, slot)

    def open(self, slot: Slot) -> SinkWriter:
        """Open a slot with its own producer; the slot's previous producer is fenced."""
        return open_slot(self, slot)

    def marks(self, slot: Slot) -> str:
        """Return the topic that stores the marks of an output."""
        return self.marks_topic or f"slackwater.marks.{identity_of(slot.pipeline, slot.output, self.topic)}"

    def target(self, slot: Slot) -> SlotTarget:
        """Return the description of a slot for error messages."""
        return SlotTarget(
            connection=self.connection,
            topic=self.topic,
            output=slot.output,
            slot=slot.number,
            timeout_ms=int(self.options.get(TIMEOUT, DEFAULT_TIMEOUT_MS)),
        )

    def __str__(self) -> str:
        return f"Kafka {self.topic} at {self.connection}"


def kafka(
    servers: str,
    topic: str,
    *,
    key: str | Sequence[str] | None = None,
    value: ValueFormat | Literal["json"] | None = None,
    headers: Mapping[str, Header] | None = None,
    partitioner: Partitioner = "murmur2_random",
    changelog: bool = False,
    tombstones: bool = False,
    delivery: Delivery = "exactly_once",
    create: int | None = None,
    marks_topic: str | None = None,
    retry_for: Duration = "5m",
    options: Mapping[str, Option] | None = None,
    tls: Tls | None = None,
    sasl: Sasl | None = None,
) -> KafkaSink:
    """Write records to a Kafka topic, exactly once: `kafka("localhost:9092", "totals", key="customer")`.

    `key` is one or more columns: text as UTF-8, bytes unchanged, anything else as JSON; several columns form a JSON
    object. `value` is JSON of all columns, or a format that can encode, such as `sw.formats.avro(...)`. JSON cannot
    represent NaN and infinities, so they are null. `headers` are columns by name, or expressions such as
    `pl.lit("eu")`. The key selects the partition as in Java clients, unless `partitioner` is "consistent"
    (librdkafka's default) or "random".

    Rows are appended: a window that fires again adds a record. Retractions are rejected, unless `changelog=True`
    (readers then check `is_retraction`) or `tombstones=True` (a retraction becomes a record with its key and no
    value, and only the last row of a key in a batch is written, for compacted topics).

    With "exactly_once" the records of a batch are a transaction: readers with `isolation.level=read_committed` see
    each row once. Marks are stored in a separate topic, `marks_topic`, which is created. "at_least_once" writes
    without transactions, and again after a failure; "at_most_once" sends once, without waiting for
    acknowledgement.

    `create` is the number of partitions to create a missing topic with. `options` are librdkafka producer settings,
    except those that the guarantee depends on. TLS and SASL: `tls=sw.kafka.tls(...)`, `sasl=sw.kafka.sasl(...)`.
    """
    for what, name in (("topic", topic), ("marks_topic", marks_topic)):
        if not (name is None and what == "marks_topic") and not (isinstance(name, str) and _TOPIC.fullmatch(name)):
            raise refuse("KAFKA_SINK_TOPIC", what=what, got=repr(name))
    check_delivery("the Kafka sink", delivery)
    check_flags("the Kafka sink", changelog=changelog, tombstones=tombstones)
    if marks_topic is not None and (delivery != "exactly_once" or marks_topic == topic):
        got = "the topic itself" if marks_topic == topic else f'delivery="{delivery}"'
        raise refuse("KAFKA_SINK_MARKS", got=got)
    if partitioner not in get_args(Partitioner):
        known = ", ".join(f'"{each}"' for each in get_args(Partitioner))
        raise refuse("KAFKA_SINK_PARTITIONER", got=repr(partitioner), known=known)
    if create is not None and (isinstance(create, bool) or not isinstance(create, int) or create < 1):
        raise refuse("KAFKA_SINK_CREATE", got=repr(create))
    columns = _key(key)
    return KafkaSink(
        connection=connection(servers, tls=tls, sasl=sasl),
        topic=topic,
        key=columns,
        value=_value(value),
        headers=_headers(headers),
        partitioner=partitioner,
        takes=_takes(columns, changelog=changelog, tombstones=tombstones),
        changelog=changelog,
        tombstones=tombstones,
        delivery=delivery,
        create=create,
        marks_topic=marks_topic,
        retry_for_ms=duration_ms(retry_for, what="retry_for", least_ms=0),
        options=checked_options(options or {}, delivery),
    )


def _takes(key: tuple[str, ...], *, changelog: bool, tombstones: bool) -> frozenset[Change]:
    if changelog and tombstones:
        raise refuse("KAFKA_SINK_CHANGES")
    if tombstones and not key:
        raise refuse("KAFKA_SINK_TOMBSTONE_KEY")
    return EVERYTHING if changelog or tombstones else frozenset({"append", "update"})


def _key(key: Any) -> tuple[str, ...]:  # noqa: ANN401  users may pass anything
    if key is None:
        return ()
    columns = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, Sequence) else ()
    if not columns or not all(isinstance(name, str) and name for name in columns) or len(set(columns)) < len(columns):
        raise refuse("KAFKA_SINK_KEY", got=repr(key))
    return columns


def _value(value: Any) -> ValueFormat | None:  # noqa: ANN401  as above
    if value is None or value == "json":
        return None
    if isinstance(value, type) or not callable(getattr(value, "encoder", None)):
        raise refuse("KAFKA_SINK_VALUE", got=repr(value) if isinstance(value, str) else type(value).__name__)
    checked: ValueFormat = value
    return checked


def _headers(headers: Any) -> tuple[tuple[str, Header], ...]:  # noqa: ANN401  as above
    given = {} if headers is None else headers
    if not isinstance(given, Mapping):
        raise refuse("KAFKA_SINK_HEADERS", got=type(given).__name__)
    for name, header in given.items():
        if not isinstance(name, str) or not name or not isinstance(header, str | pl.Expr):
            raise refuse("KAFKA_SINK_HEADERS", got=f"{name!r}: {header!r:.60}")
    return tuple(given.items())
