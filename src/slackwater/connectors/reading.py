"""How a job reads a source, and the content of a source for tools that read it without a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater.connectors.chunk import Chunk


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a job reads a source."""

    bounded: bool
    """Whether the job reads the data available at its start, and then ends."""
    listings: Path | None = None
    """The folder of a log's listings."""
    shares: int = 1
    """How many listings make up a batch."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """The current content of a source, read without Spark."""

    chunks: Iterator[Chunk]
    """Within a partition, chunks are in order of arrival; chunks of several partitions may alternate."""
    files: int = 0
    """The number of files that hold the chunks, where known."""
