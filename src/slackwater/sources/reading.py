"""How a job reads a source, and what a source holds for tools that read it without a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater.sources.chunk import Chunk


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a job reads a source."""

    bounded: bool
    """Whether the job reads what is there when it starts, and ends."""
    listings: Path | None = None
    """Where the listings of a log are."""
    shares: int = 1
    """How many listings a batch has."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a source holds now, read without Spark."""

    chunks: Iterator[Chunk]
    """The chunks of a partition stand in order of arrival; those of several partitions may alternate."""
    files: int = 0
    """In how many files they are, where that is known."""
