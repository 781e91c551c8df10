"""What a job reads from, as the driver sees it: the intake of each of its sources."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.clock.clock import Clock
from slackwater.errors import RunError
from slackwater.planning.plan import Plan
from slackwater.sources.intake import Intake, Lag, Progress, StreamPlace


@dataclass(frozen=True, kw_only=True)
class Unread:
    """What no batch has read, per stream; see `Look`."""

    backlog: dict[str, frozenset[str]] = field(default_factory=dict)
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    missing: dict[str, frozenset[str]] = field(default_factory=dict)
    lag: dict[str, dict[str, Lag]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Intakes:
    """The intakes of a job, by stream."""

    progress: Progress
    streams: dict[str, Intake]

    @classmethod
    def open(cls, plan: Plan, progress: Progress, *, slots: int) -> Intakes:
        """Return the intakes of a job whose batches run in `slots` tasks at once; refuses what cannot be read."""
        made = cls(progress=progress, streams=_intakes(plan, progress, slots=slots))
        for intake in made.streams.values():
            intake.open()
        return made

    def loss(self) -> RunError | None:
        """Return what is gone, if that may have stopped a query."""
        return next(filter(None, (intake.loss() for intake in self.streams.values())), None)

    @property
    def listed(self) -> list[Intake]:
        """Those whose sources the driver lists."""
        return [intake for intake in self.streams.values() if intake.is_listed]

    def publish(self, *, all_of_it: bool = False) -> None:
        """Offer what is new to the next batch, or all that a bounded run will read.

        Where the driver lists all sources, one more batch follows: for the final watermark, which else needs another
        query.
        """
        for intake in self.streams.values():
            intake.publish(all_of_it=all_of_it)
        listed = self.listed
        if all_of_it and len(listed) == len(self.streams):
            most = max(intake.waiting for intake in listed)
            # The batch that Spark begins with may have nothing else, and its clock is not the final one.
            if most or self.progress.is_amid_batch():
                for intake in listed:
                    if intake.waiting == most:
                        intake.publish_end()

    @property
    def is_at_end(self) -> bool:
        """Whether everything is read that a bounded run will read, and one more batch of its query follows."""
        waiting = [intake for intake in self.listed if intake.waiting]
        return bool(waiting) and all(intake.is_at_end for intake in waiting)

    def brings(self, stream: str) -> bool:
        """Return whether the next batch of a bounded run certainly has records of a stream, if it may read them."""
        return self.streams[stream].brings()

    def take(self, batch: int) -> None:
        """Note what a batch that Spark has begun reads."""
        for intake in self.streams.values():
            intake.take(batch)

    def look(self, clock: Clock) -> Unread:
        """Return what no batch has read up to the one of `clock`."""
        found = Unread()
        for stream, intake in self.streams.items():
            look = intake.look(clock.batch, clock.streams[stream].partitions)
            found.backlog[stream], found.known[stream] = look.backlog, look.known
            found.missing[stream] = look.missing
            if look.lag:
                found.lag[stream] = look.lag
        return found

    def report(self, *, left: bool = False) -> None:
        """Warn of what will never be read; with `left`, also of what a bounded run leaves unread."""
        for intake in self.streams.values():
            intake.report(left=left)

    def commit(self) -> None:
        """Tell the sources' own tools how far the streams were read."""
        for intake in self.streams.values():
            intake.commit()

    def close(self) -> None:
        """Let go of the sources."""
        for intake in self.streams.values():
            intake.close()


def check_intake(plan: Plan, progress: Progress | None) -> int | None:
    """Refuse sources that cannot be read, or not on from where `progress` has come to; needs no Spark.

    Returns how many bytes wait to be read, None if there are sources that cannot tell.
    """
    waiting = [intake.check() for intake in _intakes(plan, progress).values()]
    return None if None in waiting else sum(filter(None, waiting))


def _intakes(plan: Plan, progress: Progress | None, *, slots: int = 1) -> dict[str, Intake]:
    return {
        source.name: source.source.intake(
            StreamPlace(pipeline=plan.name, stream=source.name, number=number, progress=progress, slots=slots)
        )
        for number, source in enumerate(plan.sources)
    }
