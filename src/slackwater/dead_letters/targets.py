"""What a target of retries must be able to do: take a batch all at once, and say later whether it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from slackwater.dead_letters.ledger import Intent
from slackwater.dead_letters.repair import Left

_BATCH_ROWS: Final = 5_000
_BATCH_BYTES: Final = 16 << 20


class UnsureError(Exception):
    """Whether a batch is there is unknown; the message says why."""


class RetryTarget(ABC):
    """A log or a topic. It takes a batch whole or not at all, and can be asked whether a batch is there."""

    @abstractmethod
    def check(self) -> None:
        """Raise a fault if nothing can be sent there."""

    @abstractmethod
    def unsendable(self, letters: pl.DataFrame) -> list[Left]:
        """Return the letters that it cannot hold."""

    @abstractmethod
    def batches(self, letters: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield the letters in batches, each of which it can take at once."""

    @abstractmethod
    def facts(self, batch: str, letters: pl.DataFrame) -> Mapping[str, Any]:
        """Return what an intent must say so that `holds` finds the batch later."""

    @abstractmethod
    def publish(self, intent: Intent, letters: pl.DataFrame) -> Mapping[str, Any]:
        """Make the batch visible, all at once and for good; returns where it is now."""

    @abstractmethod
    def holds(self, intent: Intent) -> bool:
        """Return whether the batch of an intent is there; from now on no other writer can publish it.

        Raises `UnsureError` if that cannot be determined.
        """

    @abstractmethod
    def tidy(self, intent: Intent) -> None:
        """Remove what a batch has left besides its records; called when the ledger knows what became of it."""


def slices(letters: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the letters in order, so many at a time that a batch is neither long nor large."""
    size = (pl.col("payload").bin.size().fill_null(0).cum_sum() // _BATCH_BYTES).alias("size")
    number = (pl.int_range(pl.len()) // _BATCH_ROWS).alias("number")
    for rows in letters.select(size, number).with_row_index().group_by("size", "number", maintain_order=True):
        yield letters[rows[1]["index"]]
