"""The intakes of a job: the driver's view of its sources."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from slackwater.base.errors import RunError
from slackwater.connectors.intake import Intake, Lag, Progress, StreamPlace
from slackwater.eventtime.clock import Clock
from slackwater.plan.plan import Plan
from slackwater.plan.skipping import check_partitions


@dataclass(frozen=True, kw_only=True)
class Unread:
    """The data that no batch has read, per stream; see `Look`."""

    backlog: dict[str, frozenset[str]] = field(default_factory=dict)
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    missing: dict[str, frozenset[str]] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    """The streams whose backlog is certain to be all that is left."""
    lag: dict[str, dict[str, Lag]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Intakes:
    """The intakes of a job, by stream."""

    progress: Progress
    streams: dict[str, Intake]

    @classmethod
    def open(cls, plan: Plan, progress: Progress, *, slots: int) -> Intakes:
        """Return the opened intakes of a job that runs `slots` tasks at once; reject sources that cannot be read."""
        made = cls(progress=progress, streams=_intakes(plan, progress, slots=slots))
        for intake in made.streams.values():
            intake.open()
        return made

    def loss(self) -> RunError | None:
        """Return an error about lost data, if that may have stopped the query."""
        return next(filter(None, (intake.loss() for intake in self.streams.values())), None)

    @property
    def listed(self) -> list[Intake]:
        """The intakes whose sources the driver lists."""
        return [intake for intake in self.streams.values() if intake.is_listed]

    def publish(self, *, all_of_it: bool = False) -> None:
        """Offer new data to the next batch, or everything that a bounded run will read.

        If the driver lists all sources, it adds one more batch for the final watermark, which would otherwise need
        another query.
        """
        for intake in self.streams.values():
            intake.publish(all_of_it=all_of_it)
        listed = self.listed
        if all_of_it and len(listed) == len(self.streams):
            most = max(intake.waiting for intake in listed)
            # Without data, the added batch would be the query's first, whose clock is not the final one.
            if most or self.progress.is_amid_batch():
                for intake in listed:
                    if intake.waiting == most:
                        intake.publish_end()

    @property
    def is_at_end(self) -> bool:
        """Whether a bounded run has read all its data, and one more batch of its query follows."""
        waiting = [intake for intake in self.listed if intake.waiting]
        return bool(waiting) and all(intake.is_at_end for intake in waiting)

    def brings(self, stream: str) -> bool:
        """Return whether the next batch of a bounded run, if not held back, is certain to have records of a stream."""
        return self.streams[stream].brings()

    def take(self, batch: int) -> None:
        """Record what a batch that Spark has begun reads."""
        for intake in self.streams.values():
            intake.take(batch)

    def reads(self, clock: Clock) -> list[str]:
        """Return the rows that a batch reads, as `--skip-rows` takes them, as far as they are known.

        This is for a job that has failed, and its failure matters more than an error here.
        """
        found = []
        for stream, intake in self.streams.items():
            with suppress(Exception):
                reads = intake.reads(clock.batch, rows_before=clock.streams[stream].rows)
                for partition, (first, last) in sorted(reads.items()):
                    found.append(f"{stream}/{partition}:{first}-{'' if last is None else last}")
        return found

    def look(self, clock: Clock) -> Unread:
        """Return the data that no batch up to that of `clock` has read."""
        found = Unread()
        for stream, intake in self.streams.items():
            look = intake.look(clock.batch, clock.streams[stream].partitions)
            found.backlog[stream], found.known[stream] = look.backlog, look.known
            found.missing[stream] = look.missing
            if look.is_complete:
                found.complete.add(stream)
            if look.lag:
                found.lag[stream] = look.lag
        return found

    def report(self, *, left: bool = False) -> None:
        """Warn of data that will never be read; with `left`, also of data that a bounded run leaves unread."""
        for intake in self.streams.values():
            intake.report(left=left)

    def commit(self) -> None:
        """Publish the positions of the streams to the sources' own tools, such as Kafka's consumer groups."""
        for intake in self.streams.values():
            intake.commit()

    def close(self) -> None:
        """Close the intakes."""
        for intake in self.streams.values():
            intake.close()


def check_intake(plan: Plan, progress: Progress | None) -> int | None:
    """Reject sources that cannot be read, or resumed from `progress`, or lack rows to skip; needs no Spark.

    Returns the number of unread bytes, or None if any source does not know it.
    """
    intakes = _intakes(plan, progress)
    waiting = [intake.check() for intake in intakes.values()]
    for source in plan.sources:
        if source.skipped and (known := intakes[source.name].partitions()) is not None:
            check_partitions(source, known)
    return None if None in waiting else sum(filter(None, waiting))


def _intakes(plan: Plan, progress: Progress | None, *, slots: int = 1) -> dict[str, Intake]:
    return {
        source.name: source.source.intake(
            StreamPlace(pipeline=plan.name, stream=source.name, number=number, progress=progress, slots=slots)
        )
        for number, source in enumerate(plan.sources)
    }
