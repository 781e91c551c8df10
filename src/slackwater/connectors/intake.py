"""The contract of an intake: the driver's part in reading one source of a job.

Spark reads a source and keeps its offsets. Between batches the driver inspects the source itself: whether it can still
be read, which partitions have unread records, and which records will never be read.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Protocol

from slackwater.base.errors import RunError
from slackwater.base.sealed import SealedFolder
from slackwater.connectors.reading import Reading

ReadOffsets = tuple[int, int | None]
"""The first and the last offset that a batch reads, as dead letters show them; None for a last one that is unknown."""
RETAIN: Final = 100
"""How many batches can be replayed: as many as Spark keeps of its own logs."""


class Progress(Protocol):
    """How far the batches of a job have progressed; implemented by its checkpoint."""

    @property
    def path(self) -> Path:
        """The checkpoint folder, which is Spark's."""

    @property
    def home(self) -> Path:
        """Slackwater's subfolder of it."""

    @property
    def files(self) -> SealedFolder:
        """The sealed files in that subfolder."""

    @property
    def accepts_changes(self) -> bool:
        """Whether a batch may be replayed with files other than those it started with."""

    def next_batch(self) -> int:
        """Return the next batch that Spark will run."""

    def committed_batch(self) -> int:
        """Return the last committed batch, or -1."""

    def is_amid_batch(self) -> bool:
        """Return whether a batch was started and is not committed."""

    def source_offsets(self, batch: int) -> list[str]:
        """Return each source's end offset for a batch, as Spark writes it; empty if Spark has none."""

    def readable(self, path: Path) -> AbstractContextManager[None]:
        """Report errors inside as damage to a file of this checkpoint."""


@dataclass(frozen=True, kw_only=True)
class StreamPlace:
    """The position of a source in its job."""

    pipeline: str
    stream: str
    number: int
    """Its index among the sources of the plan, and so its line in Spark's offset log."""
    progress: Progress | None
    """None before the first start, when there is no checkpoint yet."""
    slots: int = 1
    """How many tasks run at the same time."""


@dataclass(frozen=True, kw_only=True)
class Lag:
    """How far a partition is behind: committed records that no batch has read yet."""

    records: int
    per_second: float = 0.0
    """How fast the lag grows; negative while the job catches up."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """The result of inspecting a source."""

    backlog: frozenset[str] = frozenset()
    """Partitions with records that a later batch will read."""
    known: frozenset[str] = frozenset()
    """Partitions that exist, even if nothing was ever in them."""
    missing: frozenset[str] = frozenset()
    """Partitions that were read and no longer exist."""
    is_complete: bool = False
    """Whether no other partition than those in `backlog` has records for a later batch of this run."""
    lag: dict[str, Lag] = field(default_factory=dict)
    """Unread records per partition, where known."""


class Intake:
    """The driver's view of one source of a job; this base class leaves everything to Spark.

    A job calls `check` before Spark starts, then `open`; `publish` before the query starts, and in a live job again
    after each batch; in each batch `take` when it starts, and `look` and `commit` after its delivery; finally `close`.
    """

    is_listed: ClassVar[bool] = False
    """Whether Spark reads only what `publish` lists. If so, a live job also lists between batches, and a bounded run
    over such sources alone ends with `publish_end`."""

    @property
    def waiting(self) -> int:
        """The number of listings that no batch has taken."""
        return 0

    @property
    def is_at_end(self) -> bool:
        """Whether only the listing of `publish_end` remains."""
        return False

    def check(self) -> int | None:
        """Reject a source that cannot be read on from the current offsets; needs no Spark and changes nothing.

        Returns the number of bytes waiting to be read, or None if unknown.
        """
        return None

    def open(self) -> None:
        """Start a run: reject a source that cannot be read, and discard listings that no batch has taken."""

    def partitions(self) -> frozenset[str] | None:
        """Return the partitions that the source has or had, once `check` was called; None if they are unknown."""
        return None

    def loss(self) -> RunError | None:
        """Return an error for data missing from the source, if that may have stopped a query."""
        return None

    def reading(self, *, bounded: bool) -> Reading:
        """Return how Spark reads the source."""
        return Reading(bounded=bounded)

    def publish(self, *, all_of_it: bool = False) -> None:
        """Offer new data to the next batch; with `all_of_it`, everything that a bounded run will read."""

    def publish_end(self) -> None:
        """Add one more batch after the one that takes the last listing."""

    def brings(self) -> bool:
        """Return whether the next batch of a bounded run is certain to have records, if it may read them."""
        return False

    def reads(self, batch: int, *, rows_before: int) -> dict[str, ReadOffsets]:  # noqa: ARG002  for subclasses
        """Return the offsets that a batch reads, by partition, as far as they are known.

        Spark has started the batch, and earlier batches read `rows_before` rows.
        """
        return {}

    def take(self, batch: int) -> None:
        """Record what a batch that Spark has started reads."""

    def look(self, batch: int, partitions: Collection[str]) -> Look:  # noqa: ARG002  for subclasses
        """Compare the source with what was read up to `batch`; `partitions` are all those seen so far."""
        return Look()

    def report(self, *, left: bool = False) -> None:
        """Warn about data that will never be read; with `left`, also about data that a bounded run leaves unread."""

    def commit(self) -> None:
        """Publish how far the job has read, as of the last look, for the source's own tools."""

    def close(self) -> None:
        """Release the source."""
