"""The contract of an intake: the driver's part in reading one source of a job.

Spark reads a source and keeps its offsets. Between two batches the driver looks at the source itself: whether it can
still be read, which partitions have records that no batch has read, and what will never be read.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from slackwater.errors import RunError
from slackwater.sources.reading import Reading


class Progress(Protocol):
    """How far the batches of a job have come; its checkpoint."""

    @property
    def path(self) -> Path:
        """Spark's folder."""

    @property
    def home(self) -> Path:
        """Slackwater's own folder in it."""

    @property
    def accepts_changes(self) -> bool:
        """Whether a batch may be run again from other files than it was begun with."""

    def next_batch(self) -> int:
        """Return the batch that Spark will run first."""

    def committed_batch(self) -> int:
        """Return the last batch that is over, or -1."""

    def is_amid_batch(self) -> bool:
        """Return whether a batch was begun and is not committed."""

    def source_offsets(self, batch: int) -> list[str]:
        """Return what each source of a batch reads up to, as Spark writes it; nothing if Spark has none."""

    def readable(self, path: Path) -> AbstractContextManager[None]:
        """Report what goes wrong inside as damage of a file of this checkpoint."""


@dataclass(frozen=True, kw_only=True)
class StreamPlace:
    """Where a source stands in its job."""

    pipeline: str
    stream: str
    number: int
    """Among the sources of the plan, which is its line in Spark's offset log."""
    progress: Progress | None
    """None before the first start, when there is no checkpoint yet."""
    slots: int = 1
    """How many tasks run at once."""


@dataclass(frozen=True, kw_only=True)
class Lag:
    """How far a partition is behind: committed records that no batch has read yet."""

    records: int
    per_second: float = 0.0
    """How fast that grows; below zero while the job catches up."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look at a source gave."""

    backlog: frozenset[str] = frozenset()
    """Partitions with records that a batch to come will read."""
    known: frozenset[str] = frozenset()
    """Partitions that exist, whether or not anything was ever in them."""
    missing: frozenset[str] = frozenset()
    """Partitions that were read and that the source no longer has."""
    lag: dict[str, Lag] = field(default_factory=dict)
    """How many records of a partition no batch has read, where that is known."""


class Intake:
    """One source of a job, as the driver sees it; this one leaves everything to Spark.

    A job calls `check` before Spark starts, then `open`; `publish` before the query, and again whenever a batch of a
    live job is over; in each batch `take` when it begins, `look` and `commit` when it was delivered; at last `close`.
    """

    is_listed: ClassVar[bool] = False
    """Whether Spark reads only what `publish` lists. Then a live job lists between batches too, and a bounded run over
    such sources alone ends with `publish_end`."""

    @property
    def waiting(self) -> int:
        """How many listings no batch has taken."""
        return 0

    @property
    def is_at_end(self) -> bool:
        """Whether only the listing of `publish_end` is left."""
        return False

    def check(self) -> int | None:
        """Refuse what cannot be read from where batches have come to; needs no Spark and changes nothing.

        Returns how many bytes wait to be read, None if that is unknown.
        """
        return None

    def open(self) -> None:
        """Begin a run: refuse what cannot be read, and forget what no batch has taken."""

    def loss(self) -> RunError | None:
        """Return what is gone from the source, if that may have stopped a query."""
        return None

    def reading(self, *, bounded: bool) -> Reading:
        """Return how Spark reads the source."""
        return Reading(bounded=bounded)

    def publish(self, *, all_of_it: bool = False) -> None:
        """Offer what is new to the next batch; or all that a bounded run will read."""

    def publish_end(self) -> None:
        """Let one more batch follow the one that takes the last of what is listed."""

    def brings(self) -> bool:
        """Return whether the next batch of a bounded run certainly has records, if it may read them."""
        return False

    def take(self, batch: int) -> None:
        """Note what a batch that Spark has begun reads."""

    def look(self, batch: int, partitions: Collection[str]) -> Look:  # noqa: ARG002  as subclasses need it
        """Compare what is there with what was read up to `batch`; `partitions` are those that were ever met."""
        return Look()

    def report(self, *, left: bool = False) -> None:
        """Warn of what will never be read; with `left`, also of what a bounded run leaves unread."""

    def commit(self) -> None:
        """Tell the source's own tools how far the job has read, as of the last look."""

    def close(self) -> None:
        """Let go of the source."""
