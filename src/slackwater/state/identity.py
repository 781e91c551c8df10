"""What tells the results of a step apart, for sinks in which one row may replace another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The columns that tell the results of a step apart."""

    keys: tuple[str, ...]
    """The columns of the key."""
    bounds: tuple[str, ...]
    """Any of these tells the results of one key apart; the last one orders them, newest last."""
    version: str
    """The column that numbers the versions of a result."""
    incidental: tuple[str, ...] = ()
    """Columns that depend on how rows were batched, and may differ when the same result is computed again."""

    def is_in(self, columns: Collection[str]) -> bool:
        """Return whether rows with these columns still have the bounds and the version."""
        return {*self.bounds, self.version} <= {*columns}
