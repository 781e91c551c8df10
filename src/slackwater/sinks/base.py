"""The contract between the engine and a sink.

Once a batch is fully evaluated, each of its outputs is handed to its sinks as a `SinkBatch`. A batch
may be handed over again after a crash, with the same rows: a sink that promises exactly once
commits the batch's mark (incarnation, batch) together with the rows and does nothing when it finds
the mark. The incarnation is made anew with every new checkpoint, so that a new run under an old
name is never mistaken for a repetition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl

Change = Literal["append", "update", "retract"]
Delivery = Literal["exactly_once", "at_least_once", "at_most_once"]


@dataclass(kw_only=True)
class SinkBatch:
    """The rows of one output in one batch."""

    incarnation: str
    batch: int
    schema: pl.Schema
    rows: int
    frames: Callable[[], Iterator[pl.DataFrame]]
    """The rows, one bounded frame after another, on the driver."""
    in_parallel: Callable[[Callable[[int, Iterator[pl.DataFrame]], None]], None] | None = None
    """For a large batch: runs a function over (part number, frames) on the executors."""
    spark_frame: Callable[[], Any] | None = None
    """The rows as a PySpark DataFrame; None outside Spark."""


class SinkWriter(ABC):
    """An open sink, on the driver."""

    @abstractmethod
    def write(self, batch: SinkBatch) -> None:
        """Deliver one batch as the sink promises; called once per batch, and again if it is run again."""

    def close(self) -> None:  # noqa: B027  most sinks hold nothing
        """Let go of connections. Called when the job stops."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sink(ABC):
    """A sink as users define it."""

    takes: frozenset[Change] = frozenset({"append"})
    delivery: Delivery = "at_least_once"

    @property
    def place(self) -> str | None:
        """What this sink alone may write to, such as a folder; None if outputs may share it."""
        return None

    @abstractmethod
    def open(self, *, pipeline: str, output: str, schema: pl.Schema, incarnation: str) -> SinkWriter:
        """Open the sink for one output, checking all that can be checked before the first batch."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the sink as `explain` shows it."""


class _Dropped(SinkWriter):
    def write(self, batch: SinkBatch) -> None:
        """Do nothing: the engine has counted the rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Drop(Sink):
    """Where `.drop()` leads: the rows are counted and go nowhere."""

    takes: frozenset[Change] = frozenset({"append", "update", "retract"})

    def open(self, *, pipeline: str, output: str, schema: pl.Schema, incarnation: str) -> SinkWriter:  # noqa: ARG002
        """Open nothing."""
        return _Dropped()

    def __str__(self) -> str:
        return "dropped (counted)"


DROP: Final = Drop()
