"""The KEYED part of a window join: rows wait until their windows are complete, then are paired within each window.

In each batch, in the order given by `StepTime.fire_first`:

1. Windows that have become complete emit their pairs and, for an outer side, their rows without a match. Rows are kept
   for their next window, or until their last one is forgotten.
2. New rows are stored. In windows that have fired and are not forgotten, they are paired with the rows there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.base.times import MAX_MS, to_timestamp
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.lateness import late_until_ms
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.joins.cells import Celled
from slackwater.operators.joins.columns import LEFT, RIGHT, SIDES, SideName, other_side
from slackwater.operators.joins.matching import Matchable, pairs
from slackwater.operators.joins.operator import JoinBatch, JoinOperator, Sides
from slackwater.operators.step import Emitted

if TYPE_CHECKING:
    from slackwater.operators.joins.windowed import WindowedJoin

_END = pl.col("__end")


class WindowedOperator(JoinOperator):
    """Stores the rows of both sides in one key group, and pairs those that share a window."""

    step: WindowedJoin

    def advance(self, batch: JoinBatch) -> None:
        """Emit the pairs of windows that have become complete and, on an outer side, rows without a match."""
        time, state, sides, out = batch.time, batch.state, batch.sides, batch.out
        if not state.wakes(time):
            return
        woken = {side: Celled.of(kept.over(time), self.step.window) for side, kept in sides.items()}
        is_complete = _END.is_between(time.previous_ms, time.watermark_ms, closed="right")
        complete = {side: self._within(side, celled, is_complete) for side, celled in woken.items()}
        met = self._show(complete[LEFT], complete[RIGHT], out)
        for side in SIDES:
            if self.step.pads(side) and not met[side].all():
                alone = complete[side].rows.filter(pl.Series(~met[side]))
                out.results.append(self.step.columns.padded(side, alone, _bounds("__end")))
            sides[side].put_back(self._waiting(woken[side], time.watermark_ms), time)

    def add(self, batch: JoinBatch) -> None:
        """Store the batch's rows, and pair those of complete windows."""
        rows, time, sides, out = batch.rows, batch.time, batch.sides, batch.out
        new: dict[SideName, Celled] = {}
        for side in SIDES:
            packets = rows.packets(side)
            if all(packet.min_end_ms > time.judge_ms for packet in packets):
                sides[side].add_packed(packets)
            elif (frame := rows.frame(side)) is not None:
                new[side] = Celled.of(frame, self.step.window)
        if new:
            self._correct(new, time, sides, out)
            for side, celled in new.items():
                sides[side].put_back(self._waiting(celled, time.judge_ms), time)

    def _correct(self, new: Mapping[SideName, Celled], time: StepTime, sides: Sides, out: Emitted) -> None:
        """Emit the pairs that new rows add to windows that were already complete and are not forgotten."""
        was_shown = _END.is_between(late_until_ms(time, self.step.lateness_ms), time.judge_ms, closed="right")
        none = {side: Celled.of(sides[side].read([]), self.step.window) for side in SIDES}
        fresh = {side: self._within(side, new.get(side, none[side]), was_shown) for side in SIDES}
        old: dict[SideName, Matchable] = {}
        for side in SIDES:
            sought = fresh[other_side(side)]
            keyed = Matchable.of(sought.rows, self.step.ports[other_side(side)].keys)
            # The `__end` of a stored row is not before the end of a window that has fired with it.
            first_ms = int(sought.times_ms.min()) if len(sought) else MAX_MS
            known = sides[side].read(sides[side].near(keyed.hashes, first_ms, MAX_MS))
            old[side] = self._within(side, Celled.of(known, self.step.window), was_shown)
        self._show(fresh[LEFT], old[RIGHT], out)
        self._show(old[LEFT], fresh[RIGHT], out)
        self._show(fresh[LEFT], fresh[RIGHT], out)

    def _within(self, side: SideName, celled: Celled, is_wanted: pl.Expr) -> Matchable:
        """Return the rows of the wanted windows, to be matched by key and window."""
        return Matchable.of(celled.within(is_wanted), (*self.step.ports[side].keys, "__start"))

    def _show(self, left: Matchable, right: Matchable, out: Emitted) -> dict[SideName, npt.NDArray[np.bool_]]:
        """Emit the pairs that share a window; return which rows of each side have matched another."""
        met = {LEFT: np.zeros(left.rows.height, np.bool_), RIGHT: np.zeros(right.rows.height, np.bool_)}
        for found in pairs(left, right, 0, 0):
            met[LEFT][found.ours] = True
            met[RIGHT][found.theirs] = True
            out.results.append(self.step.columns.pairs(left.rows, right.rows, found, _bounds("__left")))
        return met

    def _waiting(self, celled: Celled, watermark_ms: int) -> pl.DataFrame:
        """Return the rows that are still needed, with the time at which they must next be processed in `__end`."""
        last, lateness_ms = _END.max(), self.step.lateness_ms
        forgotten = pl.when(~is_forgotten(last, watermark_ms, lateness_ms)).then(last + lateness_ms)
        next_ms = pl.coalesce(_END.filter(watermark_ms < _END).min(), forgotten)
        facts = celled.per_row(next=next_ms)
        return celled.rows.with_columns(facts["next"].alias("__end")).filter(_END.is_not_null())


def _bounds(end: str) -> list[pl.Expr]:
    """Return the columns of a result that identify its window, and its event time."""
    return [
        to_timestamp(pl.col("__start")).alias("window_start"),
        to_timestamp(pl.col(end)).alias("window_end"),
        to_timestamp(pl.col(end) - 1).alias("event_time"),
    ]
