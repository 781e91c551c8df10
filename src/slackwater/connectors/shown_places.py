"""The places of rows as users write them, where they differ from those that the engine sorts rows by."""

from __future__ import annotations

from typing import Protocol

import polars as pl


class ShownPlaces(Protocol):
    """Finds the places of the rows of one source, in one task of a job."""

    def __call__(self, partitions: pl.Series, offsets: pl.Series) -> pl.DataFrame:
        """Return the columns `source` and `offset` of the rows; null where they are not known."""
