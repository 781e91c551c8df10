"""The operator of session windows: intervals of one key that merge if they touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.aggregates.combine import empty_state
from slackwater.operators.state.buckets import Buckets, Portion
from slackwater.operators.state.pieces import StepState
from slackwater.operators.step import Emitted, StepBatch
from slackwater.operators.windows.front import BEHIND, OPEN
from slackwater.operators.windows.late_rows import late_rows
from slackwater.operators.windows.operator import WindowOperator, describe, wake_of
from slackwater.operators.windows.session import SUSPECT, SessionWindow
from slackwater.operators.windows.spec import WindowSpec


class _Fresh(NamedTuple):
    """The rows of a batch, by the channel that FRONT sent them to; see `session`."""

    opened: pl.DataFrame | None
    behind: pl.DataFrame | None
    suspects: pl.DataFrame | None

    def of(self, portion: Portion) -> _Fresh:
        """Return the rows that belong to the buckets of `portion`."""
        return _Fresh(*(None if frame is None else portion.of(frame) for frame in self))


class SessionOperator(WindowOperator):
    """Stores and fires the sessions of one step in one key group.

    A row is judged after merging: it is late only if the whole session it would belong to, given the
    state and this batch, is forgotten. So rows whose own interval is forgotten arrive as whole rows on
    the channel `suspect`, and order within a batch does not matter.

    With a maximum length, an earlier row moves all cuts after it. A merged session cannot be split
    again, so the state keeps the rows of each instant as a separate unit until their session is
    forgotten, and cuts the units into sessions whenever it reads them.
    """

    def __init__(self, spec: WindowSpec, window: SessionWindow) -> None:
        super().__init__(spec)
        self.window = window
        until = pl.col("__end").max().over("__session")
        if (longest := self.window.max_length_ms) is not None:
            until = pl.min_horizontal(until, pl.col("__start").min().over("__session") + longest)
        self._until = until
        """The end of the session that a row belongs to."""

    def merged(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Merge state rows into one row per session."""
        sessions = self._sessions(rows).with_columns(self._until.alias("__end"))
        return self.panes.merge(
            sessions.drop("__until", "__in", "__rows", strict=False), [*self.spec.keys, "__session"]
        )

    def advance(self, batch: StepBatch) -> None:
        """Fire the panes that are due by the clock, and forget the windows that have expired."""
        time, state, out = batch.time, batch.state, batch.out
        if not state.wakes(time):
            return
        for rows in self._buckets(state).woken(time):
            kept = self._shown(self._sessions(rows), lambda sessions: self.panes.advance(sessions, time, out))
            self._store(kept, state, time.watermark_ms)

    def add(self, batch: StepBatch) -> None:
        """Add the batch's rows, and fire the panes that they trigger."""
        rows, time, state, out = batch.rows, batch.time, batch.state, batch.out
        spec, buckets = self.spec, self._buckets(state)
        # Rows of an open interval may be put aside unread, unless their session may be finished, or complete by a cut.
        is_aside = spec.schedule.is_lazy and not self.window.settles_open_rows(spec)
        if is_aside:
            buckets.put_aside(rows.packets(OPEN))
        fresh = _Fresh(None if is_aside else rows.frame(OPEN), rows.frame(BEHIND), rows.frame(SUSPECT))
        if buckets.is_inbox_full:
            portions = buckets.everything_near(*fresh)
        elif any(frame is not None for frame in fresh):
            portions = buckets.touched(*fresh)
        else:
            return
        for portion in portions:
            every = self._with(fresh.of(portion), self.panes.known(portion.rows, time), time, out)
            kept = self._shown(every, lambda sessions: self.panes.after_rows(sessions, time, out))
            self._store(kept, state, time.judge_ms)

    def _with(self, fresh: _Fresh, known: pl.DataFrame, time: StepTime, out: Emitted) -> pl.DataFrame:
        """Return the rows of `known` and `fresh` with their sessions, without those that are late."""
        opened, behind, suspects = fresh
        started = [self.panes.start(frame) for frame in (opened, behind) if frame is not None]
        # Rows of an open interval that can neither be ignored nor correct anything were counted as on time by FRONT.
        is_seen = self.window.settles_open_rows(self.spec)
        judged = sum(frame.height for frame in (opened if is_seen else None, behind) if frame is not None)
        if suspects is not None:
            accepted = self._judge(suspects, pl.concat([known, *started]), time, out)
            started.append(self.panes.start(accepted))
            judged += accepted.height
        every = self._sessions(pl.concat([known, *started]))
        if judged:
            self._account(every, judged, time, out)
        return every

    def _account(self, rows: pl.DataFrame, judged: int, time: StepTime, out: Emitted) -> None:
        """Count the last `judged` of `rows` as on time, refired or ignored, depending on their sessions."""
        is_done = pl.col("__done").any().over("__session") if self.spec.can_finish else pl.lit(value=False)
        facts = rows.select("__new", "__fresh", passed=self._until <= time.judge_ms, done=is_done)
        new = facts.tail(judged)
        # A row behind the watermark corrects an earlier result, unless its session is still open.
        out.count("refired", int(new.filter(pl.col("passed") & ~pl.col("done"))["__new"].sum()))
        out.count("on_time", int(new.filter(~pl.col("passed") & ~pl.col("done"))["__new"].sum()))
        out.count("ignored", int(new.filter("done")["__new"].sum()))
        # Accepted rows that no pane had shown when their session became part of a finished one.
        out.count("unshown", int(facts.filter("done").select(pl.col("__new") - pl.col("__fresh")).sum().item()))

    def _judge(self, suspects: pl.DataFrame, others: pl.DataFrame, time: StepTime, out: Emitted) -> pl.DataFrame:
        """Send suspects whose whole session is forgotten to the late output; return the others."""
        spec = self.spec
        columns = [*spec.keys, "__start", "__end"]
        every = pl.concat([suspects.select(columns), others.select(columns)])
        late_ones = self._sessions(every).select(is_late(self._until, time, spec.lateness_ms)).to_series()
        late_ones = late_ones.head(suspects.height)
        late = suspects.filter(late_ones)
        accepted = suspects.filter(~late_ones)
        if late.height:
            out.late.append(late_rows(late, spec, time.judge_ms))
        out.count("late", late.height)
        return accepted

    def _sessions(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` in their original order, with `__session`, a number that is unique among all keys."""
        keys = list(self.spec.keys)
        rows = rows.with_row_index("__place").sort([*keys, "__start", "__end"], maintain_order=True)
        reach = pl.col("__end").cum_max().shift(1).over(keys)
        gap = pl.col("__start") > reach if self.window.touching == "merge" else pl.col("__start") >= reach
        rows = rows.with_columns(gap.fill_null(value=True).cum_sum().alias("__session"))
        if self.window.max_length_ms is not None:
            rows = rows.with_columns(_cut(rows["__session"], rows["__start"], self.window.max_length_ms))
        return rows.sort("__place").drop("__place")

    def _shown(self, rows: pl.DataFrame, show: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
        """Fire panes of the sessions in `rows`, given to `show` as one row each; return the rows to store."""
        by = [*self.spec.keys, "__session"]
        if self.window.max_length_ms is None:
            return show(self.panes.merge(rows, by)).select(self.spec.state_types.names())
        units = rows.with_columns(self._until.alias("__until"))
        if self.spec.accumulation != "discarding":
            # Rows that were emitted as part of another session must be emitted again as part of this one.
            began = pl.col("__start").min().over("__session")
            units = units.with_columns(((pl.col("__new") == 0) & (pl.col("__in") != began)).alias("__moved"))
            units = units.with_columns(pl.when("__moved").then("__rows").otherwise("__new").alias("__new"))
        sessions = units.with_columns(pl.col("__until").alias("__end")).drop("__until", "__in", "__rows")
        return self._units(units, show(self.panes.merge(sessions, by)))

    def _units(self, units: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
        """Return the units of the sessions that are not forgotten, each with the pane columns of its session."""
        spec, types = self.spec, self.spec.state_types
        fates = [name for name in ("__panes", "__done", "__due", "__tick", "__shown") if name in types]
        after = sessions.select(
            "__session", *fates, pl.col("__start").alias("__began"), pl.col("__new").alias("__left")
        )
        units = units.drop(fates).join(after, on="__session", how="inner", maintain_order="left")
        # A session has emitted all its rows or none.
        seen = pl.col("__left") == 0
        changes = [
            pl.when(seen).then(0).otherwise("__new").cast(pl.Int64).alias("__new"),
            pl.when(seen).then("__began").otherwise("__in").alias("__in"),
        ]
        if "__shown" in types:
            # Only one unit carries the emitted row, so that it is retracted once, whichever sessions the units join.
            first = (pl.col("__start") == pl.col("__began")) & pl.struct("__session", "__start").is_first_distinct()
            changes.append(pl.when(first).then("__shown").otherwise(pl.lit([], types["__shown"])).alias("__shown"))
        if spec.accumulation == "discarding":
            empty = empty_state(spec.row_schema, spec.aggregates, units.height)
            changes += [pl.when(seen).then(part).otherwise(part.name).alias(part.name) for part in empty]
        return units.with_columns(changes).select(types.names())

    def _buckets(self, state: StepState) -> Buckets:
        return Buckets(state, self.spec)

    def _store(self, rows: pl.DataFrame, state: StepState, watermark_ms: int) -> None:
        end = pl.col("__until" if "__until" in rows.columns else "__end")
        wake = wake_of(self.spec, end, watermark_ms)
        self._buckets(state).store(rows, wake, lambda part: {**self._describe(part, watermark_ms), "is_settled": False})

    def _describe(self, rows: pl.DataFrame, watermark_ms: int) -> dict[str, object]:
        if "__until" in rows.columns:
            rows = rows.with_columns(pl.col("__until").alias("__end"))
        return describe(rows, self.spec, watermark_ms)


def _cut(chains: pl.Series, starts: pl.Series, longest_ms: int) -> pl.Series:
    """Cut chains (rows sorted by chain and start) into sessions: each takes the rows that start within the maximum."""
    ids, times = chains.to_numpy(), starts.to_numpy()
    begins = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
    ends = np.append(begins[1:], len(ids))
    is_first = np.zeros(len(ids), dtype=bool)
    is_first[begins] = True
    # A greedy cut is inherently sequential; only chains that are too long pay for it.
    too_long = times[ends - 1] - times[begins] >= longest_ms if len(ids) else begins
    for at, end in zip(begins[too_long].tolist(), ends[too_long].tolist(), strict=True):
        while (at := at + int(np.searchsorted(times[at:end], times[at] + longest_ms))) < end:
            is_first[at] = True
    return pl.Series("__session", np.cumsum(is_first))
