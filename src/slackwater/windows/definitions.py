"""What users write to say which windows a row belongs to. Windows cover [start, end), in event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from slackwater.errors import refuse
from slackwater.ground.durations import Duration, duration_ms, render_ms
from slackwater.ground.expressions import Expression, as_expr

_MOST_WINDOWS: Final = 100_000
"""An event shows up in as many results; a day's window every second is still below."""


@dataclass(frozen=True, kw_only=True)
class TumblingWindow:
    """Windows of one size, side by side: [k * size + offset, (k + 1) * size + offset)."""

    size_ms: int
    offset_ms: int = 0

    def __str__(self) -> str:
        return f"tumbling {render_ms(self.size_ms)}" + _offset(self.offset_ms)


@dataclass(frozen=True, kw_only=True)
class HoppingWindow:
    """Windows of one size, one starting `every` so often; they overlap, or leave gaps if every > size."""

    size_ms: int
    every_ms: int
    offset_ms: int = 0

    def __str__(self) -> str:
        return f"hopping {render_ms(self.size_ms)} every {render_ms(self.every_ms)}" + _offset(self.offset_ms)


@dataclass(frozen=True, kw_only=True)
class CumulativeWindow:
    """Windows that grow by `every` inside each `size`: [0, 1m), [0, 2m), … up to [0, size)."""

    size_ms: int
    every_ms: int
    offset_ms: int = 0

    def __str__(self) -> str:
        return f"cumulative {render_ms(self.size_ms)} by {render_ms(self.every_ms)}" + _offset(self.offset_ms)


@dataclass(frozen=True, kw_only=True)
class SlidingWindow:
    """For every event, the `size` of its key's time that ends with it: (event - size, event]."""

    size_ms: int

    def __str__(self) -> str:
        return f"sliding {render_ms(self.size_ms)}"


@dataclass(frozen=True, kw_only=True)
class SessionWindow:
    """A window that stays open while events of one key keep arriving.

    Covers [first event, last event + gap). Sessions of a key that touch merge, unless `touching`
    is "separate". A session as long as `max_length` is closed and a new one begins. `gap_expr`
    gives each row its own gap; `gap_ms` is then None.
    """

    gap_ms: int | None
    gap_expr: pl.Expr | None = None
    max_length_ms: int | None = None
    touching: Literal["merge", "separate"] = "merge"

    def __str__(self) -> str:
        gap = render_ms(self.gap_ms) if self.gap_ms is not None else "per row"
        longest = f", at most {render_ms(self.max_length_ms)}" if self.max_length_ms else ""
        return f"session gap {gap}{longest}"


@dataclass(frozen=True, kw_only=True)
class GlobalWindow:
    """One window that holds everything; only triggers, or the end of a bounded run, make it fire."""

    def __str__(self) -> str:
        return "global"


Window = TumblingWindow | HoppingWindow | CumulativeWindow | SlidingWindow | SessionWindow | GlobalWindow


def tumbling(size: Duration, *, offset: Duration = "0s") -> TumblingWindow:
    """Fixed-size windows, side by side: `tumbling("1m")`, `tumbling("1d", offset="-8h")`."""
    size_ms = duration_ms(size, what="tumbling window `size`")
    return TumblingWindow(size_ms=size_ms, offset_ms=_checked_offset(offset, size_ms, "tumbling", "size"))


def hopping(size: Duration, *, every: Duration, offset: Duration = "0s") -> HoppingWindow:
    """Fixed-size windows, one starting `every` interval: `hopping("10m", every="1m")`."""
    size_ms = duration_ms(size, what="hopping window `size`")
    every_ms = duration_ms(every, what="hopping window `every`")
    _check_overlap("hopping", size_ms, every_ms)
    offset_ms = _checked_offset(offset, every_ms, "hopping", "every")
    return HoppingWindow(size_ms=size_ms, every_ms=every_ms, offset_ms=offset_ms)


def cumulative(size: Duration, *, every: Duration, offset: Duration = "0s") -> CumulativeWindow:
    """Windows that grow by `every` up to `size`, then start over: `cumulative("1d", every="1h")`."""
    size_ms = duration_ms(size, what="cumulative window `size`")
    every_ms = duration_ms(every, what="cumulative window `every`")
    if size_ms % every_ms:
        raise refuse("CUMULATIVE_UNEVEN", size=render_ms(size_ms), every=render_ms(every_ms))
    _check_overlap("cumulative", size_ms, every_ms)
    offset_ms = _checked_offset(offset, size_ms, "cumulative", "size")
    return CumulativeWindow(size_ms=size_ms, every_ms=every_ms, offset_ms=offset_ms)


def sliding(size: Duration) -> SlidingWindow:
    """For every event, the last `size` of its key, up to and including the event: `sliding("5m")`."""
    return SlidingWindow(size_ms=duration_ms(size, what="sliding window `size`"))


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


def global_window() -> GlobalWindow:
    """A single window for all time; use a trigger such as `after_count(100)` or `every("10s")`."""
    return GlobalWindow()


def _checked_offset(offset: Duration, period_ms: int, kind: str, period: str) -> int:
    offset_ms = duration_ms(offset, what=f"{kind} window `offset`", least_ms=None)
    if abs(offset_ms) >= period_ms:
        raise refuse("WINDOW_OFFSET", kind=kind, period=period, length=render_ms(period_ms), got=render_ms(offset_ms))
    return offset_ms


def _check_overlap(kind: str, size_ms: int, every_ms: int) -> None:
    if size_ms > _MOST_WINDOWS * every_ms:
        asked = -(-size_ms // every_ms)
        raise refuse("WINDOW_OVERLAP", kind=kind, got=f"{asked:,}", most=f"{_MOST_WINDOWS:,}")


def _offset(offset_ms: int) -> str:
    return f", offset {render_ms(offset_ms)}" if offset_ms else ""
