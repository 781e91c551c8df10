"""The KEYED part of an interval join: rows of both sides wait for each other and are paired.

In each batch, in the order given by `StepTime.fire_first`:

1. Expired rows, which nothing can match any more, leave the state. Those of an outer side without a match are emitted,
   padded with nulls.
2. New rows are paired with the rows of the other side, stored and new. Then they are stored, unless they have expired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.eventtime.forgetting import is_forgotten
from slackwater.operators.joins.columns import LEFT, RIGHT, SIDES, SideName, other_side
from slackwater.operators.joins.conditions import judged
from slackwater.operators.joins.kept_rows import KeptRows
from slackwater.operators.joins.matching import Matchable, Pairs, pairs
from slackwater.operators.joins.operator import JoinBatch, JoinOperator, Sides
from slackwater.operators.state.pieces import Piece
from slackwater.operators.step import Emitted

if TYPE_CHECKING:
    from slackwater.operators.joins.interval import IntervalJoin


class IntervalOperator(JoinOperator):
    """Stores the rows of both sides in one key group, and pairs them."""

    step: IntervalJoin

    def advance(self, batch: JoinBatch) -> None:
        """Forget the rows that have expired; on an outer side, emit those without a match."""
        time, state, sides, out = batch.time, batch.state, batch.sides, batch.out
        if not state.wakes(time):
            return
        for side, kept in sides.items():
            if self.step.pads(side):
                self._pad(side, kept.over(time).filter(~pl.col("__met")), out)
            else:
                kept.forget(time.watermark_ms)

    def add(self, batch: JoinBatch) -> None:
        """Pair the batch's rows with stored ones and with each other, and store them."""
        rows, time, sides, out = batch.rows, batch.time, batch.sides, batch.out
        new = {side: rows.frame(side) for side in SIDES}
        if all(frame is None for frame in new.values()):
            return
        empty = {side: pl.DataFrame(schema=self.kept[side].types) for side in SIDES}
        arrived = {side: empty[side] if frame is None else frame for side, frame in new.items()}
        pairing = Pairing(self.step, sides, arrived, time.judge_ms)
        out.results += pairing.results
        out.count("unmatchable", pairing.unmatchable)
        for side, kept in sides.items():
            fresh = arrived[side]
            if self.step.pads(side):
                before = pairing.old[side]["__met"]
                kept.mark(pairing.pieces[side], before, before | pl.Series(pairing.old_met[side]))
                fresh = fresh.with_columns(pl.Series("__met", pairing.new_met[side]))
            is_over = is_forgotten(fresh["__end"] + 1, time.judge_ms, self.kept[side].reach_ms)
            if is_over.any():
                if self.step.pads(side):
                    self._pad(side, fresh.filter(is_over & ~fresh["__met"]), out)
                fresh = fresh.filter(~is_over)
            kept.add(rows.packets(side), fresh)

    def _pad(self, side: SideName, rows: pl.DataFrame, out: Emitted) -> None:
        if rows.height:
            out.results.append(self.step.columns.padded(side, rows))


class Pairing:
    """Pairs the new rows of a batch: has the results, and which rows have matched another."""

    def __init__(
        self,
        step: IntervalJoin,
        sides: Sides,
        new: Mapping[SideName, pl.DataFrame],
        watermark_ms: int,
    ) -> None:
        self.step = step
        self.results: list[pl.DataFrame] = []
        self.unmatchable = 0
        """The number of pairs on which the condition fails: no single row is to blame, and each may match others."""
        fresh = {side: Matchable.of(new[side], step.ports[side].keys) for side in SIDES}
        self.pieces = {side: self._near(side, sides[side], fresh[other_side(side)]) for side in SIDES}
        self.old = {side: self._old(side, sides[side], watermark_ms) for side in SIDES}
        self.new_met = {side: np.zeros(new[side].height, np.bool_) for side in SIDES}
        self.old_met = {side: np.zeros(self.old[side].height, np.bool_) for side in SIDES}
        known = {side: Matchable.of(self.old[side], step.ports[side].keys) for side in SIDES}
        self._match(fresh[LEFT], known[RIGHT], (self.new_met[LEFT], self.old_met[RIGHT]))
        self._match(known[LEFT], fresh[RIGHT], (self.old_met[LEFT], self.new_met[RIGHT]))
        self._match(fresh[LEFT], fresh[RIGHT], (self.new_met[LEFT], self.new_met[RIGHT]))

    def _near(self, side: SideName, kept: KeptRows, sought: Matchable) -> list[Piece]:
        """Return the pieces of a side that may contain partners of the other side's new rows."""
        step = self.step
        before, after = (step.upper_ms, -step.lower_ms) if side == LEFT else (-step.lower_ms, step.upper_ms)
        return kept.near(sought.hashes, sought.times_ms - before, sought.times_ms + after)

    def _old(self, side: SideName, kept: KeptRows, watermark_ms: int) -> pl.DataFrame:
        rows = kept.read(self.pieces[side])
        if self.step.late == "process" and not self.step.pads(side):
            # Expired rows are dropped some time later, and until then a late row must not be paired with them.
            return rows.filter(~is_forgotten(pl.col("__end") + 1, watermark_ms, self.step.reach_ms(side)))
        return rows

    def _match(
        self, left: Matchable, right: Matchable, met: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
    ) -> None:
        for found in self._pairs(left, right):
            met[0][found.ours] = True
            met[1][found.theirs] = True
            self.results.append(self.step.columns.pairs(left.rows, right.rows, found))

    def _pairs(self, left: Matchable, right: Matchable) -> Iterator[Pairs]:
        """Yield the pairs that match, and satisfy the condition if there is one."""
        found = pairs(left, right, self.step.lower_ms, self.step.upper_ms)
        if self.step.on_match is None:
            yield from found
            return
        mine = left.rows.select(self.step.condition_columns[LEFT])
        other = right.rows.select(self.step.condition_columns[RIGHT])
        for some in found:
            truths, failed = judged(self.step.on_match, mine, other, some)
            self.unmatchable += failed
            is_match = truths.to_numpy()
            if is_match.any():
                yield some.where(is_match)
