"""The base class of join operators, which store the rows of two sides in one key group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from slackwater.eventtime.step_time import StepTime
from slackwater.operators.joins.columns import SIDES, SideName
from slackwater.operators.joins.kept_rows import KeptRows
from slackwater.operators.joins.step import JoinStep
from slackwater.operators.state.pieces import StepState
from slackwater.operators.step import Emitted, Operator, StepRows

Sides = Mapping[SideName, KeptRows]


class JoinOperator(Operator):
    """Stores the rows of both sides in one key group, and joins them."""

    def __init__(self, step: JoinStep) -> None:
        self.step = step
        self.kept = {side: step.kept(side) for side in SIDES}

    def run(self, rows: StepRows, time: StepTime, state: StepState, *, stagger: int) -> Emitted:
        """Run one batch: advance the watermark and add the new rows, in the order given by `time.fire_first`."""
        out = Emitted()
        sides = {side: KeptRows(state, self.kept[side]) for side in SIDES}
        if time.fire_first:
            self._advance(time, state, sides, out)
            self._add(rows, time, sides, out)
        else:
            self._add(rows, time, sides, out)
            self._advance(time, state, sides, out)
        self._tidy(time, sides, stagger)
        return out

    @abstractmethod
    def _advance(self, time: StepTime, state: StepState, sides: Sides, out: Emitted) -> None:
        """Emit and forget the rows that are due by the watermark."""

    @abstractmethod
    def _add(self, rows: StepRows, time: StepTime, sides: Sides, out: Emitted) -> None:
        """Add the rows of the batch."""

    def _tidy(self, time: StepTime, sides: Sides, stagger: int) -> None:
        """Merge small pieces."""
        for kept in sides.values():
            kept.tidy(time, stagger)
