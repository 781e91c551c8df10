"""The FRONT half of the window aggregate: judge, assign windows, and combine before the shuffle.

What is late for good is split off here where that is certain; the rest is combined to one row per
key and window, so a hot key crosses the shuffle as one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from slackwater.aggregates.combine import bind, combine_rows, merge_states, prepared, state_columns
from slackwater.formats.undecoded import Undecoded
from slackwater.ground.expressions import FAILURES
from slackwater.state.step_time import StepTime
from slackwater.windows import CumulativeWindow, HoppingWindow, SessionWindow, SlidingWindow
from slackwater.windows.assign import (
    CELL,
    AlignedWindow,
    cell_exprs,
    cell_names,
    implied_exprs,
    last_end_expr,
    spread,
    windows_of,
)
from slackwater.windows.late_rows import late_rows
from slackwater.windows.spec import WindowSpec

_WORTH_MERGING: Final = 4
Guard = Callable[[pl.DataFrame, Callable[[pl.DataFrame], pl.DataFrame]], pl.DataFrame]
"""Applies a function to rows; takes out those on which it fails, each by itself."""
LONGEST_GAP_MS: Final = 100 * 365 * 86_400_000
_ARRIVED = pl.col("__off").min().alias("__arrived")
_HULL = (pl.col("__start").min(), pl.col("__end").max())
_FIRST = pl.col("__ts").sort_by("__off").first().alias("__first")


@dataclass(kw_only=True)
class Combined:
    """What FRONT made of some rows for one step."""

    combined: pl.DataFrame
    """Partial aggregates by key and window, with `__new`, the rows in each."""
    suspect: pl.DataFrame | None = None
    late: pl.DataFrame | None = None
    counts: dict[str, int] = field(default_factory=dict)


class WindowFront:
    """Prepares rows for one window step."""

    def __init__(self, spec: WindowSpec, undecoded: Undecoded | None = None) -> None:
        self.spec = spec
        self.undecoded = undecoded
        self._extra = [pl.len().cast(pl.Int64).alias("__new")]
        self._carry = [pl.col("__new").sum()]
        if spec.schedule.early_event_time_ms is not None:
            self._extra += [_ARRIVED, _FIRST]
            self._carry.append(pl.col("__first").first())

    def combine(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Combined:
        """Combine the rows of one chunk: `rows` has the user's columns and `__ts`, `__part`, `__off`."""
        window = self.spec.window
        if isinstance(window, SessionWindow):
            return self._sessions(rows, window, time, guard)
        if isinstance(window, SlidingWindow):
            return self._instants(rows, window, time, guard)
        return self._aligned(rows, window, time, guard)

    def merge(self, parts: list[pl.DataFrame]) -> pl.DataFrame:
        """Merge the combined rows of a file's chunks, which are in order."""
        rows = pl.concat(parts)
        # Where combining found few rows of a kind, merging would find few again: KEYED merges what fires anyway.
        if len(parts) > 1 and rows.height * _WORTH_MERGING < int(rows["__new"].sum()):
            rows = merge_states(rows, self.spec.by, self.spec.aggregates, self._carry)
        # A lazy step stores what comes as it is, so it comes as the state has it.
        return self.spec.conform(rows) if self.spec.schedule.is_lazy else rows

    def _aligned(self, rows: pl.DataFrame, window: AlignedWindow, time: StepTime, guard: Guard) -> Combined:
        spec, late = self.spec, None
        watermark_ms, gone_ms = time.judge_ms, time.gone_ms(spec.lateness_ms)
        oldest = rows["__ts"].min()
        # Windows move with time: if the oldest row is not late for good, no row is.
        if oldest is not None and _is_late(int(oldest), window, gone_ms):  # type: ignore[arg-type]  # whole numbers: Polars says any
            cells = rows.with_columns(cell_exprs(window, pl.col("__ts")))
            is_late = (last_end_expr(window) <= gone_ms) & (pl.col("__many") > 0)
            late = late_rows(self._whole(cells.filter(is_late)), spec, watermark_ms)
            rows = cells.filter(~is_late).drop(CELL)
        # Fewer columns to group by is faster, so what follows from the others is added afterwards.
        names = cell_names(window)
        exprs = [expr for expr in cell_exprs(window, pl.col("__ts")) if expr.meta.output_name() in names]
        cells = self._combined(rows.with_columns(exprs), [*spec.keys, *names], guard)
        cells = cells.with_columns(implied_exprs(window))
        assigned = cells.with_row_index("__cell").pipe(spread, window)
        is_open = assigned["__end"] > gone_ms
        kept = assigned.filter(is_open)
        counts = _account(cells, kept, watermark_ms)
        if kept.height < assigned.height:
            # Some of a row's windows are closed for good, not all: it is no late row, but it is said.
            counts["partly_late"] = int(cells[assigned.filter(~is_open)["__cell"].unique()]["__new"].sum())
        if kept.height > cells.height:
            kept = merge_states(kept, spec.by, spec.aggregates, self._carry)
        # The same columns in the same order, whichever way they came: KEYED puts those of all chunks under each other.
        carried = [name for name in ("__new", "__first") if name in kept.columns]
        kept = kept.select(*spec.by, *carried, *state_columns(kept, spec.aggregates))
        return Combined(combined=kept, late=late, counts=counts | {"late": 0 if late is None else late.height})

    def _instants(self, rows: pl.DataFrame, window: SlidingWindow, time: StepTime, guard: Guard) -> Combined:
        spec, watermark_ms = self.spec, time.judge_ms
        rows = rows.with_columns(
            (pl.col("__ts") + 1 - window.size_ms).alias("__start"), (pl.col("__ts") + 1).alias("__end")
        )
        is_late = rows["__end"] <= time.gone_ms(spec.lateness_ms)
        late = late_rows(self._whole(rows.filter(is_late)), spec, watermark_ms) if is_late.any() else None
        cells = self._combined(rows.filter(~is_late), spec.by, guard)
        refired = int(cells.filter(pl.col("__end") <= watermark_ms)["__new"].sum())
        counts = {"refired": refired, "on_time": int(cells["__new"].sum()) - refired}
        return Combined(combined=cells, late=late, counts=counts | {"late": 0 if late is None else late.height})

    def _sessions(self, rows: pl.DataFrame, window: SessionWindow, time: StepTime, guard: Guard) -> Combined:
        spec, watermark_ms = self.spec, time.judge_ms
        bounds = [pl.col("__ts").alias("__start"), (pl.col("__ts") + _gap(window)).alias("__end")]
        rows = guard(rows, lambda part: part.with_columns(bounds))
        is_old = rows["__end"] <= time.gone_ms(spec.lateness_ms)
        late = suspect = None
        if is_old.any():
            old, rows = self._whole(rows.filter(is_old)), rows.filter(~is_old)
            if spec.semantics.session_lateness == "before_merge":
                late = late_rows(old, spec, watermark_ms)
            else:
                suspect = self._suspects(old, guard)
        # Rows of one key within one gap-long cell are in one session, whatever else comes. A maximum
        # length, or a gap per row, needs them one by one.
        whole = window.gap_ms is not None and window.max_length_ms is None
        cell = pl.col("__ts") // window.gap_ms if whole else pl.struct("__start", "__end")
        units = self._combined(rows.with_columns(cell.alias("__cell")), [*spec.keys, "__cell"], guard, _HULL)
        units = units.drop("__cell")
        behind = int(units.filter(pl.col("__end") <= watermark_ms)["__new"].sum())
        counts = {"on_time": int(units["__new"].sum()) - behind, "late": 0 if late is None else late.height}
        return Combined(combined=units, suspect=suspect, late=late, counts=counts)

    def _combined(
        self, rows: pl.DataFrame, by: list[str], guard: Guard, bounds: tuple[pl.Expr, ...] = ()
    ) -> pl.DataFrame:
        """Combine `rows`, in an order that a re-run repeats where several results meet in one window.

        Groups come in random order, and sums of floats, and users' own accumulators, depend on the order
        in which they are merged. Where the first row to arrive decides something, that order is arrival.
        Rows that fail by themselves are left to `guard`; what fails without them is no row's fault.
        """
        aggregates, extra = self.spec.aggregates, [*bounds, *self._extra]
        try:
            combined = combine_rows(rows, by, aggregates, extra)
        except FAILURES:
            for probe in (self._evaluated, self._added):
                rows = guard(rows, probe)
            combined = combine_rows(rows, by, aggregates, extra)
        if "__arrived" in combined.columns:
            return combined.sort("__arrived").drop("__arrived")
        if isinstance(self.spec.window, HoppingWindow | CumulativeWindow | SessionWindow):
            return combined.sort([name for name in CELL if name in combined.columns])
        return combined

    def _evaluated(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` if what the aggregates read can be evaluated for each of them, else fail."""
        rows.select(prepared(bind(rows.schema, self.spec.aggregates)))
        return rows

    def _added(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` if each of them alone can be added to a state, else fail."""
        combine_rows(rows.with_row_index("__single"), ["__single"], self.spec.aggregates)
        return rows

    def _whole(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with all their columns, as they leave if they are late."""
        return rows if self.undecoded is None else self.undecoded.restored(rows, self.spec.row_schema)

    def _suspects(self, old: pl.DataFrame, guard: Guard) -> pl.DataFrame:
        """Return whole rows, each with the state it would add, for KEYED to judge."""
        numbered = old.with_row_index("__row")
        states = self._combined(numbered, ["__row"], guard)
        return numbered.join(states, on="__row", how="inner", maintain_order="left").drop("__row")


def _gap(window: SessionWindow) -> pl.Expr:
    if window.gap_expr is None:
        return pl.lit(window.gap_ms, dtype=pl.Int64)
    # A null would make the row vanish: neither old nor new, in no session.
    return window.gap_expr.cast(pl.Int64).fill_null(1).clip(1, window.max_length_ms or LONGEST_GAP_MS)


def _account(cells: pl.DataFrame, kept: pl.DataFrame, watermark_ms: int) -> dict[str, int]:
    """Count the rows of `cells`: on time, correcting a pane that was shown (refired), or in no window at all."""
    behind = kept.filter(pl.col("__end") <= watermark_ms)["__cell"].unique()
    refired = int(cells[behind]["__new"].sum()) if behind.len() else 0
    no_window = int(cells.filter(pl.col("__many") == 0)["__new"].sum())
    on_time = int(cells["__new"].sum()) - refired - no_window
    return {"on_time": on_time, "refired": refired, "no_window": no_window}


def _is_late(ts_ms: int, window: AlignedWindow, gone_ms: int) -> bool:
    """Return whether a row at `ts_ms`, or between windows next to it, may be late for good."""
    ends = [end for _, end in windows_of(window, ts_ms)]
    return not ends or max(ends) <= gone_ms
