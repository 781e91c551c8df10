"""Which worker runs which module: two run what needs Spark; further ones fill the cores while those wait."""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

ON_SPARK: Final = ("gw0", "gw1")
"""The workers with a Spark session; a session costs more to start than a third one would save."""


class FromBothEnds(LoadScopeScheduling):  # type: ignore[misc]  # has no types
    """Gives modules, those that need Spark first; the workers without Spark begin at the other end."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node.gateway.id not in ON_SPARK:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
