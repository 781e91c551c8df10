"""The FRONT part of a window step: judge rows, assign them to windows, and combine them before the shuffle.

Rows that are certainly late are split off here; the others are combined into one row per key and
window, so that a hot key crosses the shuffle as one row.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Final

import polars as pl

from slackwater.base.expressions import FAILURES
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.aggregates.combine import Aggregates, bind, combine_rows, merge_states, prepared
from slackwater.operators.step import Guard, PortFront, Taken
from slackwater.operators.windows.spec import WindowSpec

OPEN: Final = "open"
"""The channel of combined rows whose windows the watermark has not reached."""
BEHIND: Final = "behind"
"""The channel of combined rows whose windows are complete but not forgotten."""
CELLS: Final = "cells"
"""The channel of the row counts of cells, for steps whose windows may be finished before they are forgotten."""
CELL: Final = ("__start", "__end", "__many")
"""The columns of a cell, a set of rows that share all their windows: the bounds of its newest or shortest window, and
how many windows it has."""
_WORTH_MERGING: Final = 4
_ARRIVED = pl.col("__off").min().alias("__arrived")
_FIRST = pl.col("__ts").sort_by("__off").first().alias("__first")


class WindowFront(PortFront):
    """The FRONT part of one window step."""

    def __init__(self, spec: WindowSpec, undecoded: Undecoded | None = None) -> None:
        self.spec = spec
        self.undecoded = undecoded
        self._extra = [pl.len().cast(pl.Int64).alias("__new")]
        self._carry = [pl.col("__new").sum()]
        if spec.schedule.early_event_time_ms is not None:
            self._extra += [_ARRIVED, _FIRST]
            self._carry.append(pl.col("__first").first())

    @abstractmethod
    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Combine the rows of one chunk; `__new` is the number of rows in each combined one."""

    def merge(self, parts: list[pl.DataFrame], time: StepTime) -> dict[str, pl.DataFrame]:
        """Merge the combined rows of a file's chunks, and separate complete windows from open ones."""
        rows = pl.concat(parts)
        # If combining did not reduce the rows much, neither would merging; KEYED merges whatever fires anyway.
        if len(parts) > 1 and rows.height * _WORTH_MERGING < int(rows["__new"].sum()):
            rows = merge_states(rows, self.spec.by, self.spec.aggregates, self._carry)
        # A lazy step stores packets unread, so their rows must have the columns of the state.
        rows = self.spec.conform(rows) if self.spec.schedule.is_lazy else rows
        behind = rows["__end"] <= time.judge_ms
        if not behind.any():
            return {OPEN: rows}
        return {BEHIND: rows.filter(behind), OPEN: rows.filter(~behind)}

    def condense(self, channel: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Merge the combined rows of several files; row counts of cells stay unmerged."""
        if channel == CELLS:
            return rows
        merged = merge_states(rows, self.spec.by, self.spec.aggregates, self._carry)
        return self.spec.conform(merged) if self.spec.schedule.is_lazy else merged

    def _combined(
        self, rows: pl.DataFrame, by: list[str], guard: Guard, bounds: tuple[pl.Expr, ...] = ()
    ) -> pl.DataFrame:
        """Combine `rows`, in an order that a replay repeats if several combined rows may belong to one window.

        Groups come in random order, and sums of floats and user-defined accumulators depend on the order
        in which they are merged. If the first row to arrive matters, that order is arrival. Rows that fail
        on their own are left to `guard`; an error that remains without them is not attributed to a row.
        """
        aggregates, extra = self.spec.aggregates, [*bounds, *self._extra]
        try:
            combined = combine_rows(rows, by, aggregates, extra)
        except FAILURES:
            combined = combine_rows(_sound_rows(rows, aggregates, guard), by, aggregates, extra)
        if "__arrived" in combined.columns:
            return combined.sort("__arrived").drop("__arrived")
        if self.spec.window.cells_meet:
            return combined.sort([name for name in CELL if name in combined.columns])
        return combined

    def _whole(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with all their columns, including undecoded ones, as late rows need them."""
        return rows if self.undecoded is None else self.undecoded.restored(rows, self.spec.row_schema)


def usable_rows(rows: pl.DataFrame, aggregates: Aggregates, guard: Guard) -> pl.DataFrame:
    """Return the rows that the aggregates can process; rows that fail on their own are left to `guard`."""
    try:
        combine_rows(rows.with_columns(pl.lit(0).alias("__all")), ["__all"], aggregates)
    except FAILURES:
        return _sound_rows(rows, aggregates, guard)
    return rows


def _sound_rows(rows: pl.DataFrame, aggregates: Aggregates, guard: Guard) -> pl.DataFrame:
    for probe in (_evaluated, _added):
        rows = guard(rows, partial(probe, aggregates=aggregates))
    return rows


def _evaluated(rows: pl.DataFrame, aggregates: Aggregates) -> pl.DataFrame:
    """Return `rows`, or fail if an input of the aggregates cannot be evaluated for one of them."""
    rows.select(prepared(bind(rows.schema, aggregates)))
    return rows


def _added(rows: pl.DataFrame, aggregates: Aggregates) -> pl.DataFrame:
    """Return `rows`, or fail if one of them alone cannot be added to a state."""
    combine_rows(rows.with_row_index("__single"), ["__single"], aggregates)
    return rows
