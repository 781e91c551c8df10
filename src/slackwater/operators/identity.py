"""The identity of a step's results, for sinks in which one row may replace another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The columns that identify a result of a step."""

    keys: tuple[str, ...]
    """The columns of the key."""
    bounds: tuple[str, ...]
    """Each of these columns distinguishes the results of one key; the last one orders them, newest last."""
    version: str
    """The column with the version number of a result."""
    incidental: tuple[str, ...] = ()
    """Columns that depend on how rows were batched, and may differ when the same result is recomputed."""

    def is_in(self, columns: Collection[str]) -> bool:
        """Return whether `columns` include the bounds and the version."""
        return {*self.bounds, self.version} <= {*columns}
