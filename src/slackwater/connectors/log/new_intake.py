"""A log before its job is started for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.connectors.intake import Intake
from slackwater.connectors.log.listing import list_folder

if TYPE_CHECKING:
    from slackwater.connectors.log.source import LogSource


class NewLogIntake(Intake):
    """The log of a job that has never been started."""

    def __init__(self, source: LogSource) -> None:
        self._source = source

    def check(self) -> int:
        """Reject a log that cannot be read; return the number of bytes waiting."""
        return sum(file.length for file in list_folder(self._source.path).files)

    def partitions(self) -> frozenset[str]:
        """Return the partitions that have files."""
        return frozenset(file.partition for file in list_folder(self._source.path).files)
