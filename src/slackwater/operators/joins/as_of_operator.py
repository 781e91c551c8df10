"""The KEYED part of an as-of join: rows wait until the watermark passes them, then get the version valid at their time.

In each batch, in the order given by `StepTime.fire_first`:

1. Rows that the watermark has passed are emitted, each with its version. Versions past their time to live are dropped.
2. New versions are added, except those that no row can need any more. New rows wait; if late rows are processed, a row
   that the watermark has already passed is emitted at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from slackwater.base.times import to_timestamp
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.joins.columns import LEFT, OWN_TIME, RIGHT
from slackwater.operators.joins.kept_rows import KeptRows, ranked
from slackwater.operators.joins.matching import Matchable
from slackwater.operators.joins.operator import JoinBatch, JoinOperator
from slackwater.operators.joins.versions import replaced, superseded, valid_versions
from slackwater.operators.step import Emitted, StepRows

if TYPE_CHECKING:
    from slackwater.operators.joins.as_of import AsOfJoin

_TIME_OF_ROW = to_timestamp(pl.col("__left")).alias("event_time")


class AsOfOperator(JoinOperator):
    """Stores the rows and versions of one key group, and joins them."""

    step: AsOfJoin

    def tidy(self, batch: JoinBatch, stagger: int) -> None:
        """Merge small pieces; versions that no row can need any more are dropped."""
        time, sides = batch.time, batch.sides
        sides[LEFT].tidy(time, stagger)
        sides[RIGHT].tidy(time, stagger, lambda versions: self._cleaned(versions, time.watermark_ms))

    def advance(self, batch: JoinBatch) -> None:
        """Emit the rows that the watermark has passed, and forget expired versions."""
        time, state, sides, out = batch.time, batch.state, batch.sides, batch.out
        if state.wakes(time):
            self._join(sides[LEFT].over(time), sides[RIGHT], time.previous_ms, out)
            sides[RIGHT].forget(time.watermark_ms)

    def add(self, batch: JoinBatch) -> None:
        """Add the batch's versions, then its rows."""
        rows, time, sides, out = batch.rows, batch.time, batch.sides, batch.out
        self._add_versions(rows, time, sides[RIGHT], out)
        packets = rows.packets(LEFT)
        if all(packet.min_end_ms >= time.judge_ms for packet in packets):
            sides[LEFT].add_packed(packets)
            return
        new = rows.frame(LEFT)
        assert new is not None
        late = is_late(new["__end"] + 1, time)
        sides[LEFT].add(packets, new.filter(~late))
        self._join(new.filter(late), sides[RIGHT], time.judge_ms, out)

    def _add_versions(self, rows: StepRows, time: StepTime, versions: KeptRows, out: Emitted) -> None:
        """Add new versions; those behind the watermark only if a row may still need them."""
        packets = rows.packets(RIGHT)
        if all(packet.min_end_ms >= time.judge_ms for packet in packets):
            versions.add_packed(packets)
            return
        new = rows.frame(RIGHT)
        assert new is not None
        is_expired = is_forgotten(new["__end"] + 1, time.judge_ms, self.step.ttl_ms)
        out.count("expired", int(is_expired.sum()))
        fresh = new.filter(~is_expired)
        if self.step.late == "output":
            is_kept = ~self._superseded(fresh, versions, time.judge_ms)
            out.count("superseded", int((~is_kept).sum()))
            fresh = fresh.filter(is_kept)
        out.count("on_time", fresh.height - new.height)
        versions.add(packets, fresh)

    def _superseded(self, new: pl.DataFrame, versions: KeptRows, watermark_ms: int) -> pl.Series:
        """Return which new versions are older than the one that is valid at the watermark."""
        keys = self.step.right.keys
        behind = Matchable.of(new.filter(pl.col("__end") < watermark_ms), keys)
        if not len(behind):
            return pl.repeat(value=False, n=new.height, eager=True, dtype=pl.Boolean)
        near = versions.near(behind.hashes, behind.times_ms, watermark_ms)
        columns = (*keys, "__end", "__part", "__off")
        both = pl.concat([versions.read(near).select(columns), new.select(columns)])
        return superseded(ranked(both), keys, watermark_ms).tail(new.height)

    def _join(self, rows: pl.DataFrame, versions: KeptRows, watermark_ms: int, out: Emitted) -> None:
        """Emit rows with the versions valid at their times, ignoring versions that had expired at `watermark_ms`."""
        if rows.is_empty():
            return
        step = self.step
        asking = Matchable.of(rows, step.left.keys)
        known = versions.read([])
        if len(asking):
            # Expired versions are dropped some time later, and until then a late row must not be joined with them.
            reached_ms = np.maximum(asking.times_ms, watermark_ms)
            known = versions.read(versions.near(asking.hashes, reached_ms - step.ttl_ms, asking.times_ms))
            known = known.filter(~is_forgotten(pl.col("__end") + 1, int(reached_ms.min()), step.ttl_ms))
            asked = rows.select(pl.col(step.left.keys)).unique()
            known = known.join(asked, left_on=step.right.keys, right_on=step.left.keys, how="semi")
        numbered = rows.with_row_index("__row")
        keyed = numbered.drop_nulls(step.left.keys)
        found = valid_versions(keyed, known, step.left.keys, step.right.keys, step.ttl_ms)
        if len(found.ours):
            out.results.append(step.columns.pairs(keyed, known, found, (_TIME_OF_ROW,)))
        met = keyed["__row"].gather(found.ours)
        alone = numbered.filter(~pl.col("__row").is_in(met.implode()))
        if step.how == "left":
            if alone.height:
                out.results.append(step.columns.padded(LEFT, alone, (OWN_TIME,)))
        else:
            out.count("without_version", alone.height)

    def _cleaned(self, versions: pl.DataFrame, watermark_ms: int) -> pl.DataFrame:
        """Return the versions that rows may still need."""
        keys = self.step.right.keys
        if self.step.late == "process":
            return versions.filter(~replaced(keys))
        return versions.filter(~superseded(versions, keys, watermark_ms))
