"""Session windows: the rows of a key that follow each other within a gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import refuse
from slackwater.base.expressions import Expression, as_expr, one_type
from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.step import Guard, Taken
from slackwater.operators.windows.base import Window
from slackwater.operators.windows.front import WindowFront
from slackwater.operators.windows.late_rows import late_rows
from slackwater.operators.windows.operator import WindowOperator
from slackwater.operators.windows.spec import WindowSpec

LONGEST_GAP_MS: Final = 100 * 365 * 86_400_000
SUSPECT: Final = "suspect"
"""The channel of whole rows that can only be judged with the state, because sessions may merge."""
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
        """Reject a gap that is not an integer."""
        if self.gap_expr is not None:
            dtype = one_type(schema, self.gap_expr, step=step)
            if not dtype.is_integer():
                raise refuse("SESSION_GAP_TYPE", step=step, got=self.gap_expr, dtype=dtype)

    def reads(self) -> list[pl.Expr]:
        """Return the expression of the gap, if each row has its own."""
        return [] if self.gap_expr is None else [self.gap_expr]

    def session_gap_ms(self) -> int | None:
        """Return the gap; None if each row has its own."""
        return self.gap_ms

    def windows_of(self, ts_ms: int) -> list[tuple[int, int]]:
        """Return the session that an event starts; empty if each row has its own gap."""
        return [] if self.gap_ms is None else [(ts_ms, ts_ms + self.gap_ms)]

    def longest_ms(self) -> int | None:
        """Return `max_length`; without it, the length depends on the rows."""
        return self.max_length_ms

    @property
    def trails_ms(self) -> int:
        """One instant if sessions that touch merge: a row exactly at the end of a session belongs to it.

        Such a row is on time until the watermark has passed it.
        """
        return 1 if self.touching == "merge" else 0

    def state_types(self) -> dict[str, pl.DataType]:
        """Return the additional columns of the units of a session with a maximum length.

        The number of rows in the unit; the start of its session when it was last emitted; the end of its session.
        """
        if self.max_length_ms is None:
            return {}
        return {"__rows": pl.Int64(), "__in": pl.Int64(), "__until": pl.Int64()}

    def settles_open_rows(self, spec: WindowSpec) -> bool:
        """Return whether a row of an open interval may correct a complete session, by a cut, or join a finished one."""
        return spec.can_finish or (self.max_length_ms is not None and spec.lateness_ms > 0)

    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:
        """Return the FRONT part."""
        return SessionFront(spec, self, undecoded)

    def operator(self, spec: WindowSpec) -> WindowOperator:
        """Return the KEYED part."""
        from slackwater.operators.windows.session_operator import SessionOperator  # noqa: PLC0415  it imports this module

        return SessionOperator(spec, self)

    @property
    def gap(self) -> pl.Expr:
        """The gap after each row, in milliseconds."""
        if self.gap_expr is None:
            return pl.lit(self.gap_ms, dtype=pl.Int64)
        # A null would make the row disappear: neither old nor new, in no session.
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
    """Gives each row its own interval, and combines rows that certainly belong to one session."""

    def __init__(self, spec: WindowSpec, window: SessionWindow, undecoded: Undecoded | None) -> None:
        super().__init__(spec, undecoded)
        self.window = window

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Split off rows whose own interval is forgotten, and combine the others by key and unit of a session."""
        spec, window, watermark_ms = self.spec, self.window, time.judge_ms
        bounds = [pl.col("__ts").alias("__start"), (pl.col("__ts") + window.gap).alias("__end")]
        rows = guard(rows, lambda part: part.with_columns(bounds))
        is_old = is_late(rows["__end"], time, spec.lateness_ms)
        late, whole = None, dict[str, pl.DataFrame]()
        if is_old.any():
            old, rows = self._whole(rows.filter(is_old)), rows.filter(~is_old)
            if spec.semantics.session_lateness == "before_merge":
                late = late_rows(old, spec, watermark_ms)
            else:
                whole[SUSPECT] = self._suspects(old, guard)
        # Rows of one key within one gap-long cell are in one session, whatever else arrives. With a maximum
        # length or a gap per row, they must stay separate.
        is_whole = window.gap_ms is not None and window.max_length_ms is None
        cell = pl.col("__ts") // window.gap_ms if is_whole else pl.struct("__start", "__end")
        units = self._combined(rows.with_columns(cell.alias("__cell")), [*spec.keys, "__cell"], guard, _HULL)
        units = units.drop("__cell")
        counts = {"late": 0 if late is None else late.height}
        if not window.settles_open_rows(spec):
            counts["on_time"] = int(units.filter(pl.col("__end") > watermark_ms)["__new"].sum())
        return Taken(kept=units, whole=whole, late=late, counts=counts)

    def _suspects(self, old: pl.DataFrame, guard: Guard) -> pl.DataFrame:
        """Return whole rows, each with its partial aggregates, for KEYED to judge."""
        numbered = old.with_row_index("__row")
        states = self._combined(numbered, ["__row"], guard)
        return numbered.join(states, on="__row", how="inner", maintain_order="left").drop("__row")
