"""The base class of join operators, which store the rows of two sides in one key group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.operators.joins.columns import SIDES, SideName
from slackwater.operators.joins.kept_rows import KeptRows
from slackwater.operators.joins.step import JoinStep
from slackwater.operators.step import BatchOperator, StepBatch

Sides = Mapping[SideName, KeptRows]


@dataclass(kw_only=True)
class JoinBatch(StepBatch):
    """One batch of one key group, with the stored rows of both sides."""

    sides: Sides


class JoinOperator(BatchOperator[JoinBatch]):
    """Stores the rows of both sides in one key group, and joins them."""

    def __init__(self, step: JoinStep) -> None:
        self.step = step
        self.kept = {side: step.kept(side) for side in SIDES}

    def begin(self, batch: StepBatch) -> JoinBatch:
        """Return the batch with the stored rows of both sides."""
        sides = {side: KeptRows(batch.state, self.kept[side]) for side in SIDES}
        return JoinBatch(rows=batch.rows, time=batch.time, state=batch.state, sides=sides)

    def tidy(self, batch: JoinBatch, stagger: int) -> None:
        """Merge small pieces."""
        for kept in batch.sides.values():
            kept.tidy(batch.time, stagger)
