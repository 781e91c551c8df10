"""What a job reads from, as the driver sees it: its logs and its Kafka streams, and how far each was read."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from slackwater.checkpoint.checkpoint import Checkpoint
from slackwater.clock.clock import Clock
from slackwater.errors import RunError
from slackwater.kafka.client import Place
from slackwater.planning.plan import Plan
from slackwater.sources.kafka.definition import KafkaSource
from slackwater.sources.kafka.watch import KafkaWatch, processed_offsets
from slackwater.sources.log.definition import LogSource
from slackwater.sources.log.listing import LogFile, list_folder
from slackwater.spark.backlog import Unread, unread
from slackwater.spark.log_intake import LogIntake

Processed = dict[str, dict[Place, int]]
"""Up to where each Kafka stream was read."""


@dataclass(kw_only=True)
class Intake:
    """The logs and Kafka streams of a job."""

    plan: Plan
    checkpoint: Checkpoint
    logs: dict[str, LogIntake] = field(default_factory=dict)
    watches: dict[str, KafkaWatch] = field(default_factory=dict)
    _ends: Processed = field(default_factory=dict)
    """Where the Kafka streams ended when a bounded run started; its query, which starts later, reads no less."""

    @classmethod
    def open(cls, plan: Plan, checkpoint: Checkpoint, *, slots: int) -> Intake:
        """Return the intake of a job whose batches run in `slots` tasks at once."""
        made = cls(plan=plan, checkpoint=checkpoint)
        for number, source in enumerate(plan.sources):
            if isinstance(source.source, LogSource):
                log = LogIntake(
                    stream=source.name, source=source.source, checkpoint=checkpoint, number=number, shares=max(1, slots)
                )
                log.open()
                made.logs[source.name] = log
            elif isinstance(source.source, KafkaSource):
                made.watches[source.name] = _watch(source.name, source.source, plan, checkpoint.home)
        return made

    def check(self) -> None:
        """Refuse to go on without topics, or records, that are gone."""
        batch = self.checkpoint.committed_batch()
        read = self._offsets(batch) if batch >= 0 else {}
        for stream, watch in self.watches.items():
            watch.check(read.get(stream, {}))

    def loss(self) -> RunError | None:
        """Return what is gone, if that may have stopped a query."""
        try:
            self.check()
        except RunError as reason:
            return reason
        return None

    def publish(self, *, all_of_it: bool = False) -> None:
        """List what is new in the logs: for the next batch, or all that a bounded run will read.

        Where all sources are logs, one more batch follows: for the final watermark, which else needs another query.
        """
        if all_of_it:
            self._ends = {stream: watch.ends() for stream, watch in self.watches.items()}
        for log in self.logs.values():
            log.publish(all_of_it=all_of_it)
        if all_of_it and len(self.logs) == len(self.plan.sources):
            most = max(log.waiting for log in self.logs.values())
            # The batch that Spark begins with may have nothing else, and its clock is not the final one.
            if most or self.checkpoint.is_amid_batch():
                for log in self.logs.values():
                    if log.waiting == most:
                        log.publish_end()

    @property
    def is_at_end(self) -> bool:
        """Whether everything is read that a bounded run will read, and one more batch of its query follows."""
        waiting = [log for log in self.logs.values() if log.waiting]
        return bool(waiting) and all(log.is_at_end for log in waiting)

    def brings(self, stream: str, processed: Processed) -> bool:
        """Return whether the next batch of a bounded run certainly has records of a stream, if it may read them."""
        if stream in self.logs:
            log = self.logs[stream]
            return log.waiting > 0 and not log.is_at_end
        read = processed.get(stream, {})
        return any(read.get(place, 0) < end for place, end in self._ends.get(stream, {}).items())

    def take(self, batch: int) -> None:
        """Note what a batch that Spark has begun reads of the logs."""
        for log in self.logs.values():
            log.take(batch)

    def unread(self) -> Unread:
        """Return what the logs hold that no batch has read."""
        return unread(self.logs.values())

    def look(self, clock: Clock) -> tuple[Unread, Processed]:
        """Return what no batch has read, and up to where the batch of `clock` has read the Kafka streams."""
        found, processed = self.unread(), self._offsets(clock.batch)
        for stream, offsets in processed.items():
            look = self.watches[stream].look(offsets)
            found.backlog[stream], found.known[stream], found.lag[stream] = look.backlog, look.known, look.lag
            found.missing[stream] = frozenset(clock.streams[stream].partitions) - look.known
        return found, processed

    def commit(self, processed: Processed) -> None:
        """Tell the consumer groups how far the streams were read."""
        for stream, offsets in processed.items():
            self.watches[stream].commit(offsets)

    def close(self) -> None:
        """Let go of the clusters."""
        for watch in self.watches.values():
            watch.close()

    def _offsets(self, batch: int) -> Processed:
        if not self.watches:
            return {}
        # Spark's log has a line per source, in the plan's order, and then the heartbeat's.
        lines = zip(self.plan.sources, self.checkpoint.source_offsets(batch), strict=False)
        with self.checkpoint.readable(self.checkpoint.path / "offsets" / str(batch)):
            return {source.name: processed_offsets(line) for source, line in lines if source.name in self.watches}


def check_intake(plan: Plan, checkpoint: Checkpoint | None) -> int | None:
    """Refuse logs that cannot be read, or not on from where `checkpoint` has come to; needs no Spark.

    Returns how many bytes wait to be read, None if there are sources that cannot tell.
    """
    waiting: list[LogFile] = []
    for number, source in enumerate(plan.sources):
        if isinstance(source.source, LogSource) and checkpoint is None:
            waiting += list_folder(source.source.path).files
        elif isinstance(source.source, LogSource) and checkpoint is not None:
            log = LogIntake(stream=source.name, source=source.source, checkpoint=checkpoint, number=number, shares=1)
            waiting += log.check()
    are_logs = all(isinstance(source.source, LogSource) for source in plan.sources)
    return sum(file.length for file in waiting) if are_logs else None


def check_topics(plan: Plan, checkpoint: Checkpoint | None) -> None:
    """Refuse clusters that do not answer and topics, or records, that are gone; needs no Spark."""
    kafka = {source.name: source.source for source in plan.sources if isinstance(source.source, KafkaSource)}
    with tempfile.TemporaryDirectory() as nowhere:
        home = Path(nowhere) if checkpoint is None else checkpoint.home
        watches = {name: _watch(name, source, plan, home) for name, source in kafka.items()}
        if checkpoint is not None:
            Intake(plan=plan, checkpoint=checkpoint, watches=watches).check()
        else:
            for watch in watches.values():
                watch.check({})


def _watch(stream: str, source: KafkaSource, plan: Plan, home: Path) -> KafkaWatch:
    return KafkaWatch(
        stream=stream, source=source, group=source.group or plan.name, notes=home / f"kafka-{stream}.json"
    )
