"""Where state is written on Spark: the blobs of a key group, in its map state."""

from __future__ import annotations

from typing import Any


class SparkStore:
    """A key group's blobs in Spark's map state."""

    def __init__(self, state: Any) -> None:  # noqa: ANN401  PySpark's MapState has no public type
        self._state = state

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None."""
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: str, blob: bytes) -> None:
        """Store a blob."""
        self._state.updateValue((key,), (blob,))

    def remove(self, key: str) -> None:
        """Remove a blob."""
        self._state.removeKey((key,))
