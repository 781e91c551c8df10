"""Windows that depend only on a row's time: the same for every key, and known before any row arrives."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, Final

import polars as pl

from slackwater.base.errors import DefinitionError, RowError, cause_of, refuse, row_error
from slackwater.base.expressions import FAILURES
from slackwater.base.keys import join_on_keys
from slackwater.base.row_wise import is_row_wise
from slackwater.base.stable_text import stable_text
from slackwater.base.times import MAX_MS, render_time
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.aggregates.combine import merge_states, state_columns
from slackwater.operators.state.pieces import StepState
from slackwater.operators.step import Emitted, Guard, StepBatch, Taken
from slackwater.operators.windows.base import Window
from slackwater.operators.windows.front import BEHIND, CELL, CELLS, OPEN, WindowFront
from slackwater.operators.windows.late_rows import late_rows
from slackwater.operators.windows.operator import WindowOperator, describe
from slackwater.operators.windows.spec import WindowSpec

_SAMPLE: Final = [0, 1, 86_400_000, 1_772_366_400_000, 1_782_907_200_000, 4_102_444_800_000]
"""The event times that a kind of window is tested with when a pipeline is built, in winter and in summer."""
_INSTANTS: Final = 5
"""How many instants of a window are checked with the rows of a batch: the first, the last, and those between."""
_TRIED_INSTANTS: Final = 97
"""The same for the windows of the sample times: a quarter of an hour apart in a day."""
_MANY: Final = range(1_767_225_600_000, 1_830_297_600_000, 22_381_000)
"""The event times whose windows identify a kind in a checkpoint: two years, every six hours and some minutes."""


class AlignedWindow(Window):
    """A kind of window that depends only on the event time; `bounds` is all that it must implement.

    A kind in which a row has several windows also overrides the methods from `cell_names` to `spread` as needed: rows
    that share all their windows form a cell, and are combined before they are copied into the overlapping windows.
    """

    is_aligned: ClassVar[bool] = True
    is_trusted: ClassVar[bool] = False
    """Whether `bounds` is known to be correct; for user-defined kinds, the window of each row is checked."""

    @abstractmethod
    def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Return the start and the end of the window of an event at `ts`, all in epoch milliseconds."""

    @property
    def cell_names(self) -> tuple[str, ...]:
        """The columns of `CELL` that identify a cell; the others follow from them."""
        return ("__start", "__end")

    def cell(self, ts: pl.Expr) -> list[pl.Expr]:
        """Return the columns `CELL` for event times `ts`."""
        start, end = self.bounds(ts)
        return cell_columns(start, end, pl.lit(1))

    def implied(self) -> list[pl.Expr]:
        """Return the columns of `CELL` that are not in `cell_names`."""
        return [pl.lit(1, dtype=pl.Int64).alias("__many")]

    def last_end(self) -> pl.Expr:
        """Return the end of the last window of a cell: when it is forgotten, all windows of the cell are."""
        return pl.col("__end")

    def spread(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Return one row per cell and window; `__start` and `__end` become the bounds of the window."""
        return cells.drop("__many")

    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:
        """Return the FRONT part."""
        return AlignedFront(spec, self, undecoded)

    def operator(self, spec: WindowSpec) -> WindowOperator:
        """Return the KEYED part."""
        return AlignedOperator(spec, self)

    def check(self, schema: pl.Schema, *, step: str) -> None:  # noqa: ARG002  it reads only the event time
        """Reject a kind whose windows do not contain their events, overlap, or depend on other rows."""
        if self.is_trusted:
            return
        kind = f"`{type(self).__name__}`"
        try:
            if not all(is_row_wise(bound, step=step) for bound in self.bounds(pl.col("__ts"))):
                raise TypeError("a bound depends on other rows than the event's own")
            checked_cells(pl.DataFrame({"__ts": _SAMPLE}, schema={"__ts": pl.Int64}), self, _TRIED_INSTANTS)
        except DefinitionError:
            raise
        except FAILURES as error:
            cause = error.facts.get("finding", cause_of(error)) if isinstance(error, RowError) else cause_of(error)
            raise refuse("WINDOW_BOUNDS", kind=kind, step=step, cause=cause) from error

    @property
    def layout_text(self) -> str:
        """The fields of the kind; for user-defined kinds also a hash of their windows, which their code determines."""
        if self.is_trusted:
            return stable_text(self)
        times = pl.DataFrame({"__ts": _MANY}, schema={"__ts": pl.Int64})
        windows = times.select(self.cell(pl.col("__ts"))).select("__start", "__end")
        return f"{stable_text(self)} {zlib.crc32(windows.write_csv().encode()):08x}"

    def windows_of(self, ts_ms: int) -> list[tuple[int, int]]:
        """Return the windows of one event time as (start, end) in milliseconds, oldest first."""
        one = pl.DataFrame({"__ts": [ts_ms]}, schema={"__ts": pl.Int64})
        return sorted(self.spread(one.select(self.cell(pl.col("__ts")))).select("__start", "__end").rows())

    def longest_ms(self) -> int | None:
        """Return the length of the longest window at the sample times."""
        windows = [window for ts_ms in _SAMPLE if self.has_end for window in self.windows_of(ts_ms)]
        return max((end - start for start, end in windows), default=None)

    def joinable(self) -> AlignedWindow:
        """Return these windows, which are the same for both streams."""
        return self

    def band(self) -> tuple[int, int] | None:
        """Return the size and offset if all windows at the sample times agree on them, else None."""
        found = set()
        for ts_ms in _SAMPLE if self.has_end else ():
            windows = self.windows_of(ts_ms)
            found |= {(end - start, start % (end - start)) for start, end in windows} if len(windows) == 1 else {(0, 0)}
        [band] = found if len(found) == 1 else [(0, 0)]
        return band if band[0] else None

    def may_be_late(self, ts_ms: int, time: StepTime, lateness_ms: int) -> bool:
        """Return whether a row at `ts_ms` may be late: all its windows are forgotten, or it is between windows."""
        ends = [end for _, end in self.windows_of(ts_ms)]
        return not ends or is_late(max(ends), time, lateness_ms)


def checked_cells(rows: pl.DataFrame, window: AlignedWindow, instants: int = _INSTANTS) -> pl.DataFrame:
    """Return `rows`, or fail if one of them is outside the window that `window` assigns to it."""
    start, end = window.bounds(pl.col("__ts"))
    cells = rows.select("__ts", start.alias("start"), end.alias("end"))
    if not (cells.schema["start"].is_integer() and cells.schema["end"].is_integer()):
        raise TypeError(f"start is {cells.schema['start']} and end is {cells.schema['end']}, not whole numbers")
    is_inside = (pl.col("start") <= pl.col("__ts")) & (pl.col("__ts") < pl.col("end")) & (pl.col("end") < MAX_MS)
    outside = cells.filter(~is_inside.fill_null(value=False))
    if outside.height:
        ts, first, last = outside.row(0)
        raise row_error(
            "WINDOW_BOUNDS_ROW",
            finding=f"{window} assigns an event at {render_time(ts)} to the window {_range(first, last)}",
        )
    if type(window).spread is AlignedWindow.spread:
        _check_instants(cells.select("start", "end").unique(), window, instants)
    return rows


def _check_instants(windows: pl.DataFrame, window: AlignedWindow, instants: int) -> None:
    """Fail unless `window` assigns the same window to its first and last instant, and to others between them."""
    first, length = pl.col("start").cast(pl.Int64), (pl.col("end") - pl.col("start")).cast(pl.Int64)
    steps = pl.DataFrame({"__step": range(instants)}, schema={"__step": pl.Int64})
    inside = pl.when(pl.col("__step") < instants - 1).then(length // instants * pl.col("__step")).otherwise(length - 1)
    start, end = window.bounds(pl.col("__ts"))
    edges = windows.join(steps, how="cross").select("start", "end", (first + inside).alias("__ts"))
    edges = edges.with_columns(start.alias("own_start"), end.alias("own_end"))
    is_same = (pl.col("own_start") == pl.col("start")) & (pl.col("own_end") == pl.col("end"))
    differing = edges.filter(~is_same.fill_null(value=False)).sort("start", "__ts")
    if differing.height:
        start_ms, end_ms, ts, *_ = differing.row(0)
        raise row_error(
            "WINDOW_OVERLAPS",
            finding=f"{window} has a window {_range(start_ms, end_ms)}, but assigns an event at {render_time(ts)} to a "
            "different window",
        )


def _range(start_ms: int | None, end_ms: int | None) -> str:
    start, end = ("null" if ms is None else render_time(ms) for ms in (start_ms, end_ms))
    return f"from {start} to {end}"


def cell_columns(start: pl.Expr, end: pl.Expr, many: pl.Expr) -> list[pl.Expr]:
    """Return the columns `CELL`, cast to their types."""
    return [
        start.cast(pl.Int64).alias("__start"),
        end.cast(pl.Int64).alias("__end"),
        many.cast(pl.Int64).clip(lower_bound=0).alias("__many"),
    ]


def spread_copies(cells: pl.DataFrame, moved: list[pl.Expr]) -> pl.DataFrame:
    """Return a row for each window of a cell, with the bounds that `moved` computes from its number `__copy`."""
    copies = cells.with_columns(pl.int_ranges(0, pl.col("__many")).alias("__copy")).explode("__copy")
    return copies.filter(pl.col("__copy").is_not_null()).with_columns(moved).drop("__many", "__copy")


class AlignedFront(WindowFront):
    """Assigns rows to the cells of their windows, and combines them by cell."""

    def __init__(self, spec: WindowSpec, window: AlignedWindow, undecoded: Undecoded | None) -> None:
        super().__init__(spec, undecoded)
        self.window = window

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Split off late rows, and combine the others by key and window."""
        spec, window, late = self.spec, self.window, None
        if not window.is_trusted:
            rows = guard(rows, partial(checked_cells, window=window))
        watermark_ms = time.judge_ms
        oldest = rows["__ts"].min()
        # Window ends never decrease with time: if the oldest row is not late, no row is.
        if oldest is not None and window.may_be_late(int(oldest), time, spec.lateness_ms):  # type: ignore[arg-type]  # an Int64 column; the stubs say Any
            cells = rows.with_columns(window.cell(pl.col("__ts")))
            late_ones = is_late(window.last_end(), time, spec.lateness_ms) & (pl.col("__many") > 0)
            late = late_rows(self._whole(cells.filter(late_ones)), spec, watermark_ms)
            rows = cells.filter(~late_ones).drop(CELL)
        # Grouping by fewer columns is faster, so the columns that follow from them are added afterwards.
        names = window.cell_names
        exprs = [expr for expr in window.cell(pl.col("__ts")) if expr.meta.output_name() in names]
        cells = self._combined(rows.with_columns(exprs), [*spec.keys, *names], guard)
        cells = cells.with_columns(window.implied())
        assigned = cells.with_row_index("__cell").pipe(window.spread)
        is_open = ~is_late(assigned["__end"], time, spec.lateness_ms)
        kept = assigned.filter(is_open)
        counts = {"no_window": int(cells.filter(pl.col("__many") == 0)["__new"].sum())}
        whole = {}
        if spec.can_finish:
            # Whether a row is ignored depends on the state of its windows, so KEYED counts it.
            whole[CELLS] = cells.filter(pl.col("__many") > 0).select(*spec.keys, *CELL, "__new")
        else:
            counts |= _accounts(cells, kept, watermark_ms)
        if kept.height < assigned.height:
            # If some windows of a row are forgotten, but not all, the row is not late but is counted as partly late.
            counts["partly_late"] = int(cells[assigned.filter(~is_open)["__cell"].unique()]["__new"].sum())
        if kept.height > cells.height:
            kept = merge_states(kept, spec.by, spec.aggregates, self._carry)
        # All chunks need the same columns in the same order, because their rows are concatenated.
        carried = [name for name in ("__new", "__first") if name in kept.columns]
        kept = kept.select(*spec.by, *carried, *state_columns(kept, spec.aggregates))
        return Taken(kept=kept, whole=whole, late=late, counts=counts | {"late": 0 if late is None else late.height})


class AlignedOperator(WindowOperator):
    """Stores and fires the windows of one step in one key group."""

    def __init__(self, spec: WindowSpec, window: AlignedWindow) -> None:
        super().__init__(spec)
        self.window = window

    def advance(self, batch: StepBatch) -> None:
        """Fire the panes that are due by the clock, and forget the windows that have expired."""
        time, state, out = batch.time, batch.state, batch.out
        watermark = time.watermark_ms
        self._forget_settled(watermark, state, out)
        if not state.wakes(time):
            return
        lazy = self.spec.schedule.is_lazy
        wanted = [p for p in state.pieces if not lazy or (not p.is_settled and p.min_end_ms <= watermark)]
        rows = state.take_rows(wanted, self.spec)
        if lazy and any(p.max_end_ms > watermark for p in wanted):
            # Only complete windows fire, because the rows of a lazy step are merged when they do. Others are put back.
            state.append(rows.filter(pl.col("__end") > watermark), self._describe(watermark))
            rows = rows.filter(pl.col("__end") <= watermark)
        rows = self.panes.merge(rows)
        if self.spec.is_shown_once and not rows["__panes"].max():
            self.panes.show_last(rows, watermark, out)
        else:
            state.append(self.panes.advance(rows, time, out), self._describe(watermark))

    def _forget_settled(self, watermark_ms: int, state: StepState, out: Emitted) -> None:
        """Drop settled pieces past the allowed lateness, unread; if final results are an output, emit those."""
        lateness, settled = self.spec.lateness_ms, [p for p in state.pieces if p.is_settled]
        if not self.spec.has_final:
            state.drop([p for p in settled if is_forgotten(p.max_end_ms, watermark_ms, lateness)])
        elif ending := [p for p in settled if is_forgotten(p.min_end_ms, watermark_ms, lateness)]:
            rows = self.panes.merge(state.take_rows(ending, self.spec))
            state.append(self.panes.forget(rows, watermark_ms, out), self._describe(watermark_ms))

    def add(self, batch: StepBatch) -> None:
        """Add the batch's rows, and fire the panes that they trigger."""
        rows, time, state, out = batch.rows, batch.time, batch.state, batch.out
        lazy = self.spec.schedule.is_lazy
        if lazy:
            state.append_packets(rows.packets(OPEN))
        eager = rows.frame(*([BEHIND] if lazy else [OPEN, BEHIND]))
        if eager is None:
            self._account(rows.frame(CELLS), None, time, out)
            return
        first, last = int(eager["__end"].min()), int(eager["__end"].max())  # type: ignore[arg-type]  # an Int64 column; the stubs say Any
        touched = [p for p in state.pieces if p.min_end_ms <= last and p.max_end_ms >= first]
        known = self.panes.known(state.take_rows(touched, self.spec), time)
        merged = self.panes.merge(pl.concat([known, self.panes.start(eager)]))
        self._account(rows.frame(CELLS), merged, time, out)
        state.append(self.panes.after_rows(merged, time, out), self._describe(time.judge_ms))

    def _account(self, cells: pl.DataFrame | None, windows: pl.DataFrame | None, time: StepTime, out: Emitted) -> None:
        """Count the batch's rows as on time, refired or ignored, by whether their `windows` are finished."""
        if cells is None:
            return
        kept = cells.with_row_index("__cell").pipe(self.window.spread)
        kept = taking = kept.filter(~is_late(pl.col("__end"), time, self.spec.lateness_ms))
        if windows is not None:
            taking = join_on_keys(kept, windows.filter("__done"), self.spec.by, how="anti")
        accounts = _accounts(cells, taking, time.judge_ms)
        accounts["ignored"] = int(cells["__new"].sum()) - sum(accounts.values())
        if taking.height < kept.height:
            finished = join_on_keys(kept, taking, [*self.spec.by, "__cell"], how="anti")
            accounts["partly_ignored"] = int(cells[finished["__cell"].unique()]["__new"].sum()) - accounts["ignored"]
        for account, number in accounts.items():
            out.count(account, number)

    def tidy(self, batch: StepBatch, stagger: int) -> None:
        """Merge pieces of about the same size."""
        time, state = batch.time, batch.state
        if crowd := state.crowded(stagger):
            merged = self.panes.merge(state.take_rows(crowd, self.spec))
            state.append(merged, self._describe(time.watermark_ms), tier=crowd[0].tier + 1)

    def _describe(self, watermark_ms: int) -> Any:  # noqa: ANN401  a function from frame to index fields
        return lambda rows: describe(rows, self.spec, watermark_ms)


def _accounts(cells: pl.DataFrame, taking: pl.DataFrame, watermark_ms: int) -> dict[str, int]:
    """Count the rows of `cells` that the windows in `taking` accept: on time, or refired by a correction."""
    behind = taking.filter(pl.col("__end") <= watermark_ms)["__cell"].unique()
    refired = int(cells[behind]["__new"].sum())
    return {"refired": refired, "on_time": int(cells[taking["__cell"].unique()]["__new"].sum()) - refired}
