"""What every window operator does in a batch, whatever its windows are."""

from __future__ import annotations

from abc import ABC, abstractmethod

from slackwater.state.inputs import GroupRows
from slackwater.state.pieces import StepState
from slackwater.state.step_time import StepTime
from slackwater.windows.panes import Shown


class WindowOperator(ABC):
    """Keeps the windows of one step in one key group, and fires them."""

    def run(self, rows: GroupRows, time: StepTime, state: StepState, *, stagger: int) -> Shown:
        """Do one batch: fire what the clock calls for and add the rows, in the order `time` says."""
        out = Shown()
        if time.fire_first:
            self._advance(time, state, out)
            self._add(rows, time, state, out)
        else:
            self._add(rows, time, state, out)
            self._advance(time, state, out)
        self._compact(time, state, stagger)
        return out

    @abstractmethod
    def _advance(self, time: StepTime, state: StepState, out: Shown) -> None:
        """Show the panes that the clock calls for, and forget what it closes for good."""

    @abstractmethod
    def _add(self, rows: GroupRows, time: StepTime, state: StepState, out: Shown) -> None:
        """Take the batch's rows, and show the panes that they call for."""

    @abstractmethod
    def _compact(self, time: StepTime, state: StepState, stagger: int) -> None:
        """Merge pieces that have piled up; `stagger` spreads that over the key groups' batches."""
