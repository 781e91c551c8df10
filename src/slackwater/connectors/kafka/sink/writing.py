"""An open slot: its producer, and its partition of the marks topic.

1. The slot's producer is started, which fences the previous one and aborts its open transaction.
2. The mark is the last one committed.
3. Rows and mark are sent in one transaction, and the broker acknowledges them all before
4. the commit makes them visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.base.crash_points import crash_point
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.sink.errors import SlotTarget
from slackwater.connectors.kafka.sink.marks import MarksReader, mark_record
from slackwater.connectors.kafka.sink.names import identity_of
from slackwater.connectors.kafka.sink.preparing import MARKS_PARTITIONS, grow_marks
from slackwater.connectors.kafka.sink.records import Records
from slackwater.connectors.kafka.sink.transactions import RecordSender
from slackwater.connectors.sink import Mark, SinkBatch, SinkWriter, Slot, Unavailable

if TYPE_CHECKING:
    from slackwater.connectors.kafka.sink.definition import KafkaSink


@dataclass(kw_only=True)
class KafkaWriter(SinkWriter):
    """Writes one slot's share of each batch."""

    records: Records
    sender: RecordSender
    marks: MarksReader

    def mark(self) -> Mark | None:
        """Return the last committed mark."""
        with self.sender.target.translated():
            return self.marks.last()  # 2

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Write the rows and the mark in one transaction, or the rows alone."""
        if mark is not None:
            self.sender.begin()  # 3
        for encoded in self.records.encoded(batch):
            self.sender.send(encoded)
        if mark is not None:
            marks = self.marks
            self.sender.send_one(marks.topic, marks.key, mark_record(mark, marks.topic_id), partition=marks.partition)
        self.sender.wait()
        crash_point("written", batch.batch)
        if mark is not None:
            self.sender.commit()  # 4

    def close(self) -> None:
        """Abort anything uncommitted."""
        self.sender.close()


def open_slot(sink: KafkaSink, slot: Slot) -> KafkaWriter:
    """Open a slot; earlier writers are fenced when this returns."""
    identity = f"{identity_of(slot.pipeline, slot.output, sink.topic)}.{slot.number}"
    has_marks = sink.delivery == "exactly_once"
    records = Records.of(sink, slot)
    if has_marks and slot.number >= MARKS_PARTITIONS:
        grow_marks(sink, slot)
    sender = RecordSender(
        target=sink.target(slot),
        delivery=sink.delivery,
        identity=identity if has_marks else None,
        settings={**sink.options, "partitioner": sink.partitioner},
    )
    sender.start()  # 1
    cluster = Cluster(connection=sink.connection)
    marks = MarksReader(
        cluster=cluster,
        topic=sink.marks(slot),
        partition=slot.number,
        key=identity,
        topic_id=_topic_id(cluster, sender.target) if has_marks else "",
    )
    return KafkaWriter(records=records, sender=sender, marks=marks)


def _topic_id(cluster: Cluster, target: SlotTarget) -> str:
    """Return the id of the topic being written to, which another topic of the same name would not share."""
    with target.translated():
        found = cluster.topics([target.topic], None)
    if target.topic not in found:
        raise Unavailable(f"topic {target.topic} does not exist")
    return found[target.topic]
