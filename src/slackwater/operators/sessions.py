"""The window aggregate over sessions: intervals of one key that merge while they touch."""

from __future__ import annotations

import numpy as np
import polars as pl

from slackwater.eventtime.clock import MIN_MS, StepTime
from slackwater.operators.aligned import describe
from slackwater.operators.inputs import GroupRows
from slackwater.operators.late_rows import late_rows
from slackwater.operators.panes import Panes, Shown
from slackwater.operators.pieces import StepState
from slackwater.operators.spec import WindowSpec
from slackwater.operators.window_operator import WindowOperator
from slackwater.windows import SessionWindow


class Sessions(WindowOperator):
    """Keeps the sessions of one step in one key group, and fires them.

    A row is judged after merging: it is late for good only if the whole session it would belong to,
    with everything the state and this batch know, is forgotten. So rows whose own interval is
    forgotten come as `suspect` whole rows, and order within a batch does not matter.
    """

    def __init__(self, spec: WindowSpec) -> None:
        assert isinstance(spec.window, SessionWindow)
        self.spec = spec
        self.window = spec.window
        self.panes = Panes(spec)

    def _advance(self, time: StepTime, state: StepState, out: Shown) -> None:
        if not state.wakes(time):
            return
        merged, waiting = self._merge(state.take_rows(list(state.pieces), self.spec), time.watermark_ms)
        kept = self.panes.advance(merged, time, out)
        self._store(pl.concat([kept, waiting]), state, time.watermark_ms)

    def _add(self, rows: GroupRows, time: StepTime, state: StepState, out: Shown) -> None:
        watermark, spec = time.judge_ms, self.spec
        suspects = rows.frame(spec.name, rows.suspect)
        behind = rows.frame(spec.name, rows.behind)
        crowded = len(state.pieces) >= 16  # noqa: PLR2004  as many as aligned windows let pile up
        if spec.schedule.is_lazy and suspects is None and behind is None and not crowded:
            for blob in rows.open:
                facts = {"min_end_ms": blob.min_end_ms, "max_end_ms": blob.max_end_ms, "wake_ms": blob.min_end_ms}
                state.append_blob(blob.payload, rows=blob.rows, **facts)
            return
        opened = rows.frame(spec.name, rows.open)
        fresh = [self.panes.start(frame) for frame in (opened, behind) if frame is not None]
        known = self.panes.known(state.take_rows(list(state.pieces), self.spec), time)
        if suspects is not None:
            accepted = self._judge(suspects, pl.concat([known, *fresh]), watermark, out)
            fresh.append(self.panes.start(accepted))
        out.count("refired", 0 if behind is None else int(behind["__new"].sum()))
        merged, waiting = self._merge(pl.concat([known, *fresh]), watermark)
        merged = self.panes.after_rows(merged, time, out)
        self._store(pl.concat([merged, waiting.drop("__fresh")]), state, watermark)

    def _judge(self, suspects: pl.DataFrame, others: pl.DataFrame, watermark_ms: int, out: Shown) -> pl.DataFrame:
        """Send the suspects whose whole session is forgotten to the late output; return the others."""
        spec = self.spec
        columns = [*spec.keys, "__start", "__end"]
        every = pl.concat([suspects.select(columns), others.select(columns)]).with_row_index("__row")
        sessions = self._sessions(every)
        alive = sessions.filter(pl.col("__end").max().over([*spec.keys, "__session"]) + spec.lateness_ms > watermark_ms)
        is_alive = pl.int_range(suspects.height, eager=True).is_in(alive["__row"].cast(pl.Int64).implode())
        late = suspects.filter(~is_alive)
        accepted = suspects.filter(is_alive)
        if late.height:
            out.late.append(late_rows(late, spec, watermark_ms))
        out.count("late", late.height)
        out.count("refired", accepted.height)
        return accepted

    def _sessions(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` in their order, with `__session` numbering the sessions of each key."""
        keys = list(self.spec.keys)
        rows = rows.with_row_index("__place").sort([*keys, "__start", "__end"], maintain_order=True)
        reach = pl.col("__end").cum_max().shift(1).over(keys)
        gap = pl.col("__start") > reach if self.window.touching == "merge" else pl.col("__start") >= reach
        rows = rows.with_columns(gap.fill_null(value=True).cum_sum().alias("__session"))
        rows = rows if self.window.max_length_ms is None else _cut(rows, self.window.max_length_ms)
        return rows.sort("__place").drop("__place")

    def _merge(self, rows: pl.DataFrame, watermark_ms: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the sessions in `rows`, one row each, and the rows that must wait unmerged.

        With a maximum length, rows at or after the watermark wait as they are: an earlier row may
        still come and move the cuts, and a merged session cannot be taken apart again.
        """
        by = [*self.spec.keys, "__session"]
        rows = self._sessions(rows)
        waiting = rows.clear().drop("__session")
        if self.window.max_length_ms is not None and self.spec.schedule.is_lazy:
            end = pl.col("__end").max().over(by)
            waits = (end > watermark_ms) & (pl.col("__start") >= watermark_ms)
            waiting = rows.filter(waits).drop("__session")
            # What is merged already knows where its session ends, so that it does not fire too soon.
            rows = rows.with_columns(end.alias("__end")).filter(~waits)
        return self.panes.merge(rows, by).select(waiting.columns), waiting

    def _compact(self, time: StepTime, state: StepState, stagger: int) -> None:
        """Do nothing: sessions are merged whenever one may end, so pieces do not pile up."""

    def _store(self, rows: pl.DataFrame, state: StepState, watermark_ms: int) -> None:
        if rows.height:
            state.append_whole(rows, lambda part: {**describe(part, self.spec, watermark_ms), "is_settled": False})


def _cut(rows: pl.DataFrame, longest_ms: int) -> pl.DataFrame:
    """Cut chains that are too long: a session takes, in time order, what starts before its maximum."""
    starts = pl.col("__start")
    long = (starts.max() - starts.min()).over("__session") >= longest_ms
    chains = rows.with_row_index("__at").filter(long).select("__at", "__session", "__start")
    opened = np.full(rows.height, MIN_MS, dtype=np.int64)
    current, first = -1, 0
    # A greedy cut is sequential by nature; only chains that are too long pay for it.
    for row, number, start in chains.iter_rows():
        if number != current or start >= first + longest_ms:
            current, first = number, start
        opened[row] = first
    rows = rows.with_columns(pl.Series("__cut", opened))
    moved = (pl.col("__session") != pl.col("__session").shift(1)) | (pl.col("__cut") != pl.col("__cut").shift(1))
    rows = rows.with_columns(moved.fill_null(value=True).cum_sum().alias("__session")).drop("__cut")
    latest = starts.min().over("__session") + longest_ms
    return rows.with_columns(pl.min_horizontal("__end", latest).alias("__end"))
