"""What a source definition tells the planner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import polars as pl


@dataclass(frozen=True, kw_only=True, eq=False)
class Source(ABC):
    """Where a stream's rows come from. A source of bytes needs `.decode`; a typed one has a schema."""

    has_places: ClassVar[bool] = True
    """Whether a row has a place, partition and offset, that is the same when its batch is run again."""

    @property
    @abstractmethod
    def schema(self) -> pl.Schema | None:
        """The columns of a typed source; None for a source of bytes."""

    @property
    def place(self) -> str | None:
        """The folder that is read, which no output may be written to; None if it is no folder."""
        return None

    @property
    def metadata(self) -> pl.Schema:
        """Columns that a source of bytes adds to what is decoded; none unless asked for."""
        return pl.Schema()

    @abstractmethod
    def __str__(self) -> str:
        """Return the source as `explain` shows it."""
