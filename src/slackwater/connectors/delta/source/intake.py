"""The driver's view of a Delta table: whether a bounded run has read it to its end."""

from __future__ import annotations

from collections.abc import Collection

from slackwater.connectors.dataframe.intake import NumberedIntake
from slackwater.connectors.intake import Look, Progress, StreamPlace

_NOTHING = "-"
"""What Spark logs as the offset of a source that has none."""


class DeltaIntake(NumberedIntake):
    """Compares the offsets of a batch with those of the batch before it.

    In a bounded run Spark fixes the end at the start, and each batch reads at least one file more if there is one. So a
    batch whose offset did not move is at the end. A live run draws no conclusion from it.
    """

    def __init__(self, place: StreamPlace) -> None:
        self._progress, self._number = place.progress, place.number

    def look(self, batch: int, partitions: Collection[str]) -> Look:  # noqa: ARG002  a table has a single partition
        """Return that nothing is left if the batch did not move the offset."""
        if self._progress is None:
            return Look()
        return Look(is_complete=self._offset(self._progress, batch) == self._offset(self._progress, batch - 1))

    def _offset(self, progress: Progress, batch: int) -> str:
        lines = progress.source_offsets(batch)
        return lines[self._number] if self._number < len(lines) else _NOTHING
