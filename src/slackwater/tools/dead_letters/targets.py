"""The contract of a retry target: accept a batch atomically, and report later whether it holds the batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from slackwater.tools.dead_letters.ledger import Intent
from slackwater.tools.dead_letters.repair import Left

_BATCH_ROWS: Final = 5_000
_BATCH_BYTES: Final = 16 << 20


class UnsureError(Exception):
    """It cannot be determined whether the target holds a batch; the message says why."""


class RetryTarget(ABC):
    """A log or a topic that accepts a batch atomically, and can be asked whether it holds a batch."""

    @abstractmethod
    def check(self) -> None:
        """Raise a fault if nothing can be sent to this target."""

    @abstractmethod
    def unsendable(self, letters: pl.DataFrame) -> list[Left]:
        """Return the letters that this target cannot hold."""

    @abstractmethod
    def batches(self, letters: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Split the letters into batches that can each be published atomically."""

    @abstractmethod
    def facts(self, batch: str, letters: pl.DataFrame) -> Mapping[str, Any]:
        """Return the facts that an intent must contain for `holds` to find the batch later."""

    @abstractmethod
    def publish(self, intent: Intent, letters: pl.DataFrame) -> Mapping[str, Any]:
        """Make the batch visible, atomically and permanently; return where it is."""

    @abstractmethod
    def holds(self, intent: Intent) -> bool:
        """Return whether this target holds the batch of an intent; from then on, no other writer can publish it.

        Raises `UnsureError` if that cannot be determined.
        """

    @abstractmethod
    def tidy(self, intent: Intent) -> None:
        """Remove everything that a batch has left besides its records; called once its outcome is in the ledger."""


def slices(letters: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split the letters, in order, into batches limited in rows and bytes."""
    size = (pl.col("payload").bin.size().fill_null(0).cum_sum() // _BATCH_BYTES).alias("size")
    number = (pl.int_range(pl.len()) // _BATCH_ROWS).alias("number")
    for rows in letters.select(size, number).with_row_index().group_by("size", "number", maintain_order=True):
        yield letters[rows[1]["index"]]
