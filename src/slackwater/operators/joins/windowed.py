"""Window joins: pairs of rows with equal keys that share a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import refuse
from slackwater.base.times import TIMESTAMP
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.joins.columns import LEFT, RIGHT, SIDES, SideName, join_columns
from slackwater.operators.joins.kept_rows import Kept
from slackwater.operators.joins.step import How, JoinStep, checked_how, checked_suffixes
from slackwater.operators.joins.windowed_front import WindowedFront
from slackwater.operators.joins.windowed_operator import WindowedOperator
from slackwater.operators.late_rows import check_late_columns, late_schema
from slackwater.operators.ports import Port
from slackwater.operators.step import PortFront, StepDefinition
from slackwater.operators.windows.aligned import AlignedWindow
from slackwater.operators.windows.base import Window, written_kind


@dataclass(frozen=True, kw_only=True)
class WindowedJoin(JoinStep):
    """A join of rows that share a window."""

    window: AlignedWindow

    @property
    def late_types(self) -> pl.Schema:
        """The columns of both sides, the side that the row came from, and the windows that it missed."""
        missed = pl.List(pl.Struct({"start": TIMESTAMP, "end": TIMESTAMP}))
        return late_schema(self.columns.late_types, windows=missed, side=pl.String())

    @property
    def emission_delay_ms(self) -> int:
        """The allowed lateness: how long a window may be corrected."""
        return self.lateness_ms

    @property
    def layout(self) -> dict[str, str]:
        """The columns of both sides, and the window."""
        return {**self._ports_text, "window": self.window.layout_text}

    def written(self, part: str, text: str) -> str:
        """Return a part of a layout with the name that users write for the kind of window."""
        return written_kind(text) if part == "window" else text

    @property
    def rules(self) -> str:
        """The other settings that decide which pairs match, and the columns of results."""
        return repr((self.how, self.lateness_ms, dict(self.result_types)))

    def kept(self, side: SideName) -> Kept:
        """Return how a side is stored; `__end` is the watermark at which a row must next be processed."""
        types = self.kept_types(side, __ts=pl.Int64())
        return Kept(part=SIDES.index(side), types=types, keys=self.ports[side].keys, reach_ms=-1, is_awaited=True)

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  all columns are read
        """Return the FRONT part of a side."""
        return WindowedFront(step=self, side=LEFT if port == LEFT else RIGHT)

    def operator(self) -> WindowedOperator:
        """Return the KEYED part."""
        return WindowedOperator(self)

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        keys = [f"{mine} = {other}" for mine, other in zip(self.left.keys, self.right.keys, strict=True)]
        after = f" and {render_ms(self.lateness_ms)} more" if self.lateness_ms else ""
        lines = [
            ("join", f"{self.how}, {', '.join(keys)}, in the same window"),
            ("window", f"{self.window}, allowed lateness {render_ms(self.lateness_ms)}"),
            ("keeps", f"rows of both sides until their last window is complete{after}"),
        ]
        return lines + [
            ("unmatched", f"{side} rows come out when their window is complete") for side in SIDES if self.pads(side)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowedDefinition(StepDefinition):
    """A window join as the user defined it."""

    window: AlignedWindow
    lateness_ms: int
    how: How
    suffixes: tuple[str, str]

    def resolve(self, name: str, ports: Mapping[str, Port]) -> WindowedJoin:
        """Return the step for the columns of `ports`, or reject the definition."""
        left, right = ports[LEFT], ports[RIGHT]
        for port in (left, right):
            check_late_columns(port, name, "side", "windows")
            self.window.check(port.schema, step=name)
        bounds = {"window_start": TIMESTAMP, "window_end": TIMESTAMP}
        columns = replace(join_columns(name, left, right, self.suffixes, bounds), carried=("__start",))
        return WindowedJoin(
            name=name,
            left=left,
            right=right,
            columns=columns,
            how=self.how,
            window=self.window,
            lateness_ms=self.lateness_ms,
        )


def window_join(
    *, windows: tuple[Window, Window], lateness_ms: tuple[int, int], how: How, suffixes: tuple[str, str]
) -> WindowedDefinition:
    """Return the definition of a window join, or reject its options."""
    window, other = (each.joinable() for each in windows)
    if window != other or lateness_ms[0] != lateness_ms[1]:
        first, second = (
            f"{each}, allowed lateness {render_ms(ms)}" for each, ms in zip(windows, lateness_ms, strict=True)
        )
        raise refuse("JOIN_WINDOWS_DIFFER", left=first, right=second)
    if checked_how(how) != "inner" and lateness_ms[0]:
        raise refuse("JOIN_WINDOW_LATENESS", how=how, got=render_ms(lateness_ms[0]))
    return WindowedDefinition(window=window, lateness_ms=lateness_ms[0], how=how, suffixes=checked_suffixes(suffixes))
