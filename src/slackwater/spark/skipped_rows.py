"""The rows that `--skip-rows` names and that a run did not meet."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Final

from slackwater.base.errors import SlackwaterWarning, counted, listed, notice
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.ranges import Ranges
from slackwater.plan.plan import Plan, SkippedRows

_SHOWN: Final = 5


class UnmetRowsWarning(SlackwaterWarning):
    """Rows to skip were not among those that a run read."""


@dataclass(kw_only=True)
class SkippedSoFar:
    """The rows to skip that the batches of a run had."""

    met: dict[str, Ranges] = field(default_factory=dict)

    def note(self, stats: BatchStats) -> None:
        """Add those of a batch."""
        for rows, ranges in stats.skipped.items():
            self.met.setdefault(rows, Ranges()).add(ranges.pairs)

    def report(self, plan: Plan) -> None:
        """Warn about rows to skip that no batch had."""
        unmet, total = [], 0
        named = ((rows, source.source.has_places) for source in plan.sources for rows in source.skipped)
        for rows, has_places in named:
            for first, last in self._unmet(rows, has_places=has_places):
                unmet.append(rows._replace(first=first, last=last))
                total += last - first + 1
        if unmet:
            facts = {"count": counted(total, "row"), "rows": listed(unmet, most=_SHOWN)}
            warnings.warn(notice("SKIP_ROWS_UNMET", **facts), UnmetRowsWarning, stacklevel=3)

    def _unmet(self, rows: SkippedRows, *, has_places: bool) -> list[tuple[int, int]]:
        met = self.met.get(str(rows), Ranges())
        if met.pairs and not has_places:
            return []  # rows that Slackwater numbers itself do not have every number
        return list(met.missing(rows.first, rows.last))
