"""Session windows: a key's rows that follow each other without a pause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import polars as pl

from slackwater.errors import refuse
from slackwater.formats.undecoded import Undecoded
from slackwater.ground.durations import Duration, duration_ms, render_ms
from slackwater.ground.expressions import Expression, as_expr, one_type
from slackwater.state.step import Guard, Taken
from slackwater.state.step_time import StepTime
from slackwater.windows.base import Window
from slackwater.windows.front import WindowFront
from slackwater.windows.late_rows import late_rows
from slackwater.windows.operator import WindowOperator
from slackwater.windows.spec import WindowSpec

LONGEST_GAP_MS: Final = 100 * 365 * 86_400_000
SUSPECT: Final = "suspect"
"""The channel of whole rows that only the state can judge: sessions may merge."""
_HULL = (pl.col("__start").min(), pl.col("__end").max())


@dataclass(frozen=True, kw_only=True)
class SessionWindow(Window):
    """A window that stays open while events of one key keep arriving.

    Covers [first event, last event + gap). Sessions of a key that touch merge, unless `touching`
    is "separate". A session as long as `max_length` is closed and a new one begins. `gap_expr`
    gives each row its own gap; `gap_ms` is then None.
    """

    gap_ms: int | None
    gap_expr: pl.Expr | None = None
    max_length_ms: int | None = None
    touching: Literal["merge", "separate"] = "merge"

    may_move: ClassVar[bool] = True
    cells_meet: ClassVar[bool] = True

    def check(self, schema: pl.Schema, *, step: str) -> None:
        """Refuse a gap that is not a whole number."""
        if self.gap_expr is not None:
            dtype = one_type(schema, self.gap_expr, step=step)
            if not dtype.is_integer():
                raise refuse("SESSION_GAP_TYPE", step=step, got=self.gap_expr, dtype=dtype)

    def reads(self) -> list[pl.Expr]:
        """Return the gap, where each row has its own."""
        return [] if self.gap_expr is None else [self.gap_expr]

    def windows_of(self, ts_ms: int) -> list[tuple[int, int]]:
        """Return the session that an event begins; none where each row has its own gap."""
        return [] if self.gap_ms is None else [(ts_ms, ts_ms + self.gap_ms)]

    def longest_ms(self) -> int | None:
        """Return `max_length`; without it, rows decide."""
        return self.max_length_ms

    def state_types(self) -> dict[str, pl.DataType]:
        """Return what the units of a session that may be cut have.

        The rows of a unit; where its session began when it was shown; where its session ends.
        """
        if self.max_length_ms is None:
            return {}
        return {"__rows": pl.Int64(), "__in": pl.Int64(), "__until": pl.Int64()}

    def settles_open_rows(self, spec: WindowSpec) -> bool:
        """Whether the row of an open interval may correct a complete session, by a cut, or come to a finished one."""
        return spec.can_finish or (self.max_length_ms is not None and spec.lateness_ms > 0)

    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:
        """Return what FRONT does to the rows."""
        return SessionFront(spec, self, undecoded)

    def operator(self, spec: WindowSpec) -> WindowOperator:
        """Return what keeps and fires the windows of a key group."""
        from slackwater.windows.session_operator import SessionOperator  # noqa: PLC0415  it works on this kind

        return SessionOperator(spec, self)

    @property
    def gap(self) -> pl.Expr:
        """The gap after each row, in milliseconds."""
        if self.gap_expr is None:
            return pl.lit(self.gap_ms, dtype=pl.Int64)
        # A null would make the row vanish: neither old nor new, in no session.
        return self.gap_expr.cast(pl.Int64).fill_null(1).clip(1, self.max_length_ms or LONGEST_GAP_MS)

    def __str__(self) -> str:
        gap = render_ms(self.gap_ms) if self.gap_ms is not None else "per row"
        longest = f", at most {render_ms(self.max_length_ms)}" if self.max_length_ms else ""
        return f"session gap {gap}{longest}"


def session(
    gap: Duration | pl.Expr,
    *,
    max_length: Duration | None = None,
    touching: Literal["merge", "separate"] = "merge",
) -> SessionWindow:
    """Windows that end after a gap in activity: `session("30m", max_length="24h")`.

    `gap` can be an expression for the gap of each row in whole milliseconds; null or a value below one counts as
    one, and more than a hundred years as a hundred years. `touching` decides whether events exactly one gap apart
    share a session ("merge") or not ("separate").
    """
    if touching not in ("merge", "separate"):
        raise refuse("SESSION_TOUCHING", got=repr(touching))
    gap_ms = None if isinstance(gap, pl.Expr) else duration_ms(gap, what="session window `gap`")
    longest = None if max_length is None else duration_ms(max_length, what="session window `max_length`")
    if longest is not None and gap_ms is not None and longest < gap_ms:
        raise refuse("SESSION_MAX_LENGTH", gap=render_ms(gap_ms), got=render_ms(longest))
    gap_expr: Expression | None = gap if isinstance(gap, pl.Expr) else None
    return SessionWindow(
        gap_ms=gap_ms,
        gap_expr=None if gap_expr is None else as_expr(gap_expr),
        max_length_ms=longest,
        touching=touching,
    )


class SessionFront(WindowFront):
    """Gives each row its own interval, and combines rows that are surely of one session."""

    def __init__(self, spec: WindowSpec, window: SessionWindow, undecoded: Undecoded | None) -> None:
        super().__init__(spec, undecoded)
        self.window = window

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Split off what is old, and combine the rest by key and unit of a session."""
        spec, window, watermark_ms = self.spec, self.window, time.judge_ms
        bounds = [pl.col("__ts").alias("__start"), (pl.col("__ts") + window.gap).alias("__end")]
        rows = guard(rows, lambda part: part.with_columns(bounds))
        is_old = rows["__end"] <= time.gone_ms(spec.lateness_ms)
        late, whole = None, dict[str, pl.DataFrame]()
        if is_old.any():
            old, rows = self._whole(rows.filter(is_old)), rows.filter(~is_old)
            if spec.semantics.session_lateness == "before_merge":
                late = late_rows(old, spec, watermark_ms)
            else:
                whole[SUSPECT] = self._suspects(old, guard)
        # Rows of one key within one gap-long cell are in one session, whatever else comes. A maximum
        # length, or a gap per row, needs them one by one.
        is_whole = window.gap_ms is not None and window.max_length_ms is None
        cell = pl.col("__ts") // window.gap_ms if is_whole else pl.struct("__start", "__end")
        units = self._combined(rows.with_columns(cell.alias("__cell")), [*spec.keys, "__cell"], guard, _HULL)
        units = units.drop("__cell")
        counts = {"late": 0 if late is None else late.height}
        if not window.settles_open_rows(spec):
            counts["on_time"] = int(units.filter(pl.col("__end") > watermark_ms)["__new"].sum())
        return Taken(kept=units, whole=whole, late=late, counts=counts)

    def _suspects(self, old: pl.DataFrame, guard: Guard) -> pl.DataFrame:
        """Return whole rows, each with the state it would add, for KEYED to judge."""
        numbered = old.with_row_index("__row")
        states = self._combined(numbered, ["__row"], guard)
        return numbered.join(states, on="__row", how="inner", maintain_order="left").drop("__row")
