"""The display of the running demo: a panel on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

import polars as pl
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slackwater.base.errors import counted
from slackwater.base.times import LAST_USABLE_MS, MIN_MS, render_time
from slackwater.observe.metrics.report import BatchReport
from slackwater.tools.demo.definition import PURCHASES
from slackwater.tools.demo.producer import SPEED, Producer

_RATE_OVER_S: Final = 10.0
_LINE_EVERY_S: Final = 5.0
_PANEL_WIDTH: Final = 92


@dataclass(kw_only=True)
class Screen:
    """Shows the demo's progress while it is open; it is given the report of every batch."""

    console: Console
    feed: Producer
    reports: dict[int, BatchReport] = field(default_factory=dict)
    """The reports by batch; a replayed batch replaces its first run."""
    watermark_ms: int = MIN_MS
    active: dict[str, int] = field(default_factory=dict)
    """Active users by country in the newest window shown."""
    phase: str = "starting Spark"
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _printed: float = 0.0
    _since: float = field(default_factory=time.monotonic)
    _live: Live | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(console=self.console, get_renderable=self.panel, refresh_per_second=8, transient=True)
            self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, phase: str) -> None:
        """Show the current phase."""
        self.phase, self._since = phase, time.monotonic()
        if self._live is None:
            self.console.print(f"{phase} …")

    def batch(self, report: BatchReport) -> None:
        """Add the report of a batch; called on the stream's thread, so it draws nothing itself."""
        self.reports[report.batch] = report
        if report.watermark_ms <= LAST_USABLE_MS:
            self.watermark_ms = report.watermark_ms
        now = time.monotonic()
        self._recent.append((now, report.rows))
        while len(self._recent) > 2 and now - self._recent[0][0] > _RATE_OVER_S:  # noqa: PLR2004  two points make a rate
            self._recent.popleft()
        if self._live is None and self.feed.has_begun and now - self._printed >= _LINE_EVERY_S:
            self._printed = now
            self.console.print(self._line(), soft_wrap=True, highlight=False)

    def show_active(self, rows: pl.DataFrame) -> None:
        """Add new rows of the active-users window."""
        end = rows["window_end"].max()
        # Phones that were off for hours bring windows of long ago; only the newest window is of interest.
        if isinstance(end, datetime) and end.timestamp() * 1_000 >= self.feed.started_ms:
            newest = rows.filter(pl.col("window_end") == end).sort("users", descending=True)
            self.active = dict(newest.select("country", "users").rows())

    @property
    def records(self) -> int:
        """The number of records that the job has read."""
        return sum(report.rows for report in list(self.reports.values()))

    @property
    def dead(self) -> int:
        """The number of dead letters."""
        return sum(report.dead_letters for report in list(self.reports.values()))

    @property
    def panes(self) -> int:
        """The number of panes of both steps."""
        return sum(report.total("panes") for report in list(self.reports.values()))

    def purchases(self, what: str) -> int:
        """Return a count of the purchases step; the other step has its own allowed lateness."""
        counted = [report.stats.counts.get(PURCHASES) for report in list(self.reports.values())]
        return sum(counts[what] for counts in counted if counts is not None)

    def counts(self) -> dict[str, Counter[str]]:
        """Return the job's counts per step."""
        counted: dict[str, Counter[str]] = {}
        for report in self.reports.values():
            for name, numbers in report.stats.counts.items():
                counted.setdefault(name, Counter()).update(numbers)
        return counted

    @property
    def rate(self) -> float:
        """Records per second, over the last seconds."""
        if len(self._recent) < 2:  # noqa: PLR2004  two points make a rate
            return 0.0
        (began, _), *rest = self._recent
        return sum(rows for _, rows in rest) / max(rest[-1][0] - began, 0.001)

    def panel(self) -> RenderableType:
        """Return the current panel."""
        done = self.feed.elapsed_s
        head = Table.grid(padding=(0, 2))
        head.add_column(min_width=28)
        head.add_row(
            Text(self._shown_phase, style="bold"),
            ProgressBar(total=self.feed.seconds, completed=done, width=40),
            Text(f"{done:.0f} of {self.feed.seconds:.0f} s", style="dim"),
        )
        facts = Table.grid(padding=(0, 2))
        for _ in range(2):
            facts.add_column(style="dim", no_wrap=True)
            facts.add_column(justify="right", no_wrap=True, min_width=9)
            facts.add_column(style="dim", no_wrap=True, min_width=13)
        facts.add_row("records", f"{self.records:,}", f"{counted(round(self.rate), 'row')}/s", *self._watermark())
        refired, late = self.purchases("refired"), self.purchases("late")
        facts.add_row("panes fired", f"{self.panes:,}", "", "late re-firings", f"{refired:,}", "rows")
        facts.add_row("late output", f"{late:,}", "rows", "dead letters", f"{self.dead:,}", "records")
        active = Text("active users, last 5 minutes   ", style="dim")
        for country, users in list(self.active.items())[:6]:
            active.append(f"{country} ", style="cyan").append(f"{users:,}   ", style="default")
        return Panel(
            Group(head, Text(), facts, Text(), active),
            title="slackwater demo",
            subtitle=Text(f"one second here is {SPEED} seconds of the customers' time", style="dim"),
            width=min(_PANEL_WIDTH, self.console.width),
            padding=(1, 2),
        )

    @property
    def _shown_phase(self) -> str:
        """The current phase; until the stream begins, with how long it has taken, because some take a while."""
        return self.phase if self.feed.has_begun else f"{self.phase} {time.monotonic() - self._since:.0f} s"

    def _watermark(self) -> tuple[str, str, str]:
        if self.watermark_ms <= MIN_MS:
            return "watermark", "none yet", ""
        return "watermark", _clock(self.watermark_ms), f"{self._lag_s:,.0f} s behind"

    @property
    def _lag_s(self) -> float:
        return max(0, self.feed.phones.now_ms - self.watermark_ms) / 1_000

    def _line(self) -> str:
        label, moment, lag = self._watermark()
        lines = [
            f"{self.feed.elapsed_s:3.0f} s",
            counted(self.records, "record"),
            f"{counted(round(self.rate), 'row')}/s",
            f"{label} {moment}" + (f" ({lag})" if lag else ""),
            f"panes {self.panes:,}",
            f"late {self.purchases('late'):,}",
            f"dead letters {self.dead:,}",
        ]
        return "  ".join(lines)


def _clock(milliseconds: int) -> str:
    return render_time(milliseconds)[11:19]
