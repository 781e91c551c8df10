"""A sweep as a plot on a terminal: late and corrected events, and the delay of results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from rich.text import Text

from slackwater.base.durations import render_ms
from slackwater.tools.lateness.text import percent
from slackwater.tools.simulator.sweep import Sweep, Swept

_COLUMNS: Final = 58
_LINES: Final = 12
_LATE, _CORRECTED, _DELAY = "●", "◆", "○"
_STYLES: Final = {_LATE: "red", _CORRECTED: "yellow", _DELAY: "cyan"}


def plotted(sweep: Sweep, points: Sequence[Swept]) -> Text:
    """Return the plot: shares of events against the left axis, the delay against the right axis."""
    late = [point.account.share("late") for point in points]
    corrected = [point.account.share("corrected") for point in points]
    delays = [point.account.delay_ms[0] for point in points]
    most, slowest = max(late + corrected) or 1.0, max(delay or 0 for delay in delays) or 1
    grid = [[" "] * _COLUMNS for _ in range(_LINES)]
    values = [point.value_ms for point in points]
    _curve(grid, values, [None if delay is None else delay / slowest for delay in delays], _DELAY)
    if any(corrected):
        _curve(grid, values, [share / most for share in corrected], _CORRECTED)
    _curve(grid, values, [share / most for share in late], _LATE)
    text = Text()
    text.append(f"{_LATE} late    ", style=_STYLES[_LATE])
    if any(corrected):
        text.append(f"{_CORRECTED} corrected a result    ", style=_STYLES[_CORRECTED])
    text.append(f"{_DELAY} delay of results, p50 (right)\n", style=_STYLES[_DELAY])
    for number, line in enumerate(grid):
        left = percent(most) if number == 0 else "0 %" if number == _LINES - 1 else ""
        right = render_ms(round(slowest, -2)) if number == 0 else "0s" if number == _LINES - 1 else ""
        text.append(f"{left:>8} ┤")
        for sign in line:
            text.append(sign, style=_STYLES.get(sign))
        text.append(f"├ {right}\n")
    first, last = render_ms(values[0]), render_ms(values[-1])
    text.append(" " * 9 + "└" + "─" * _COLUMNS + "┘\n")
    text.append(" " * 10 + first + sweep.control.name.center(_COLUMNS - len(first) - len(last)) + last)
    return text


def _curve(grid: list[list[str]], values: Sequence[int], parts: Sequence[float | None], sign: str) -> None:
    """Draw a curve: a large symbol for each value, small ones in between."""
    first, span = values[0], values[-1] - values[0]
    known = [
        (round((value - first) / span * (_COLUMNS - 1)), part)
        for value, part in zip(values, parts, strict=True)
        if part is not None
    ]
    for (column, part), (after, next_part) in pairwise(known):
        for between in range(column + 1, after):
            line = _line(part + (between - column) / (after - column) * (next_part - part))
            if grid[line][between] == " ":
                grid[line][between] = "·"
    for column, part in known:
        grid[_line(part)][column] = sign


def _line(part: float) -> int:
    return _LINES - 1 - round(part * (_LINES - 1))
