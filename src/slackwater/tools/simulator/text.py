"""The figures of a simulation, on a terminal or as plain text."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from slackwater.base.durations import render_ms
from slackwater.tools.lateness.text import percent
from slackwater.tools.simulator.account import SimulationAccount
from slackwater.tools.simulator.plot import plotted
from slackwater.tools.simulator.sweep import Sweep, Swept

_WIDTH: Final = 100
_ACCOUNTS: Final = (
    ("on time", "on_time", True),
    ("corrected a result", "corrected", True),
    ("ignored, window finished", "ignored", False),
    ("in no window", "no_window", False),
    ("late", "late", True),
    ("dead letters", "dead", True),
    ("on the way at the end", "on_the_way", True),
)
"""The label and name of each account, and whether it is shown when it is empty."""
_FIGURES: Final[tuple[tuple[str, Callable[[SimulationAccount], str]], ...]] = (
    ("windows with a result", lambda account: f"{account.windows:,}"),
    ("panes per window", lambda account: f"{account.panes_per_window:.2f}"),
    ("delay of results p50", lambda account: shown_ms(account.delay_ms[0])),
    ("delay of results p95", lambda account: shown_ms(account.delay_ms[1])),
    ("delay of results p99", lambda account: shown_ms(account.delay_ms[2])),
    ("age of oldest open window", lambda account: shown_ms(account.oldest_open_ms)),
    ("largest state", lambda account: f"{account.state_rows:,} rows"),
)
_SWEPT: Final[tuple[tuple[str, Callable[[SimulationAccount], str]], ...]] = (
    ("on time", lambda account: percent(account.share("on_time"))),
    ("corrected", lambda account: percent(account.share("corrected"))),
    ("ignored", lambda account: percent(account.share("ignored"))),
    ("late", lambda account: percent(account.share("late"))),
    ("dead", lambda account: percent(account.share("dead"))),
    ("delay\np50", lambda account: shown_ms(account.delay_ms[0])),
    ("\np99", lambda account: shown_ms(account.delay_ms[2])),
    ("panes/\nwindow", lambda account: f"{account.panes_per_window:.2f}"),
)
_ALWAYS: Final = ("on time", "late")
_NOTHING: Final = {"corrected": "0 %", "ignored": "0 %", "dead": "0 %", "panes/\nwindow": "1.00"}


def shown_ms(milliseconds: int | None) -> str:
    """Return a duration for a table, to a tenth of a second."""
    if milliseconds is None:
        return "–"
    rounded = round(milliseconds, -2)
    return f"{rounded / 1_000:.1f}s" if rounded < 60_000 else render_ms(round(rounded, -3))  # noqa: PLR2004  a minute


def comparison(accounts: Sequence[tuple[str, SimulationAccount]]) -> Table:
    """Return a table of the figures of simulations, one column each."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for name, _ in accounts:
        table.add_column(Text(name), justify="right")
    every = [account for _, account in accounts]
    table.add_row("events", *(Text(f"{account.events:,}", style="bold") for account in every))
    for label, name, is_always in _ACCOUNTS:
        if is_always or any(getattr(account, name) for account in every):
            table.add_row(f"  {label}", *(_counted(account, name) for account in every))
    for label, figure in _FIGURES:
        table.add_row(label, *map(figure, every))
    return table


def sweep_parts(sweep: Sweep, points: Sequence[Swept]) -> Iterator[RenderableType]:
    """Yield the table of a sweep and its plot."""
    table = Table(box=box.SIMPLE_HEAD)
    columns = [(sweep.control.name, [render_ms(point.value_ms) for point in points])]
    columns += [(head, [figure(point.account) for point in points]) for head, figure in _SWEPT]
    # A column that is empty throughout only takes up room.
    shown = [(head, cells) for head, cells in columns if head in _ALWAYS or set(cells) != {_NOTHING.get(head)}]
    for head, _ in shown:
        table.add_column(head, justify="right", no_wrap=True, vertical="bottom")
    for row in zip(*(cells for _, cells in shown), strict=True):
        table.add_row(*row)
    yield table
    yield plotted(sweep, points)


def comparison_text(*accounts: tuple[str, SimulationAccount]) -> str:
    """Return the figures of simulations as plain text."""
    return _plain([comparison(accounts)])


def _plain(parts: Iterator[RenderableType] | Sequence[RenderableType]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None)
    for part in parts:
        console.print(part, highlight=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _counted(account: SimulationAccount, name: str) -> Text:
    rows = int(getattr(account, name))
    style = {"late": "red", "dead": "magenta", "corrected": "yellow"}.get(name, "default") if rows else "dim"
    return Text(f"{rows:,}  {percent(account.share(name)):>7}", style=style)
