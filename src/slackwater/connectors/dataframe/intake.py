"""The driver's view of a source whose rows Slackwater numbers."""

from __future__ import annotations

from slackwater.connectors.dataframe.rows import first_place
from slackwater.connectors.intake import Intake, ReadOffsets


class NumberedIntake(Intake):
    """A source with one partition, in which rows are numbered as they are read."""

    def partitions(self) -> frozenset[str]:
        """Return the single partition, which has no name."""
        return frozenset({""})

    def reads(self, batch: int, *, rows_before: int) -> dict[str, ReadOffsets]:  # noqa: ARG002  as in the contract
        """Return the first number; the last one is known only once the rows are read."""
        return {"": (first_place(rows_before), None)}
