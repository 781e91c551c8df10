"""The progress of a running job, in lines that can be read at a glance."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter as Counts
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TextIO

from slackwater.base.durations import render_ms, roughly
from slackwater.base.errors import counted
from slackwater.base.terminal_line import RewrittenLine
from slackwater.base.times import LAST_USABLE_MS, MIN_MS, render_time
from slackwater.connectors.sink import Drop

if TYPE_CHECKING:
    from slackwater.observe.metrics.report import BatchReport
    from slackwater.plan.plan import OutputPlan

_WORTH_SAYING_MS: Final = 1_000


@dataclass(kw_only=True)
class ProgressLines:
    """Prints what the batches did: on a terminal in one line that is rewritten, otherwise in a line now and then.

    While nothing arrives and nothing changes, it prints a line once a minute.
    """

    quiet: bool = False
    out: TextIO = sys.stderr
    verbose: bool = False
    """Whether to print idle batches as often as others."""
    every_s: float = 2.0
    idle_every_s: float = 60.0
    clock: Callable[[], float] = time.monotonic
    totals: Counts[str] = field(default_factory=Counts)
    delivered: Counts[str] = field(default_factory=Counts)
    """Rows of each output in this run."""
    _began: float = field(default_factory=time.monotonic)
    _printed: float = -math.inf
    _line: RewrittenLine = field(default_factory=RewrittenLine)
    _state: object = None
    _unprinted: int = 0
    """The number of batches without a line since the last line."""

    @property
    def is_terminal(self) -> bool:
        """Whether lines can be rewritten."""
        return self.out.isatty()

    def begin(self, name: str) -> None:
        """Print that the job starts, because the first batch takes a while; a terminal shows the phases instead."""
        if not self.is_terminal or self.verbose:
            self._say(f"{name}: starting Spark (the first batch takes a few seconds) …", always=True)

    def show(self, text: str) -> None:
        """Rewrite the line of a terminal."""
        self._say(text, always=False)

    def settle(self) -> None:
        """Leave the line of a terminal as it is, and begin a new one."""
        self._line.leave()

    def note(self, text: str) -> None:
        """Print a text in its own line."""
        self.settle()
        self._say(text, always=True)

    def batch(self, report: BatchReport) -> None:
        """Print what a batch did."""
        for what in ("panes", "late", "partly_late", "on_time", "refired", "ignored", "unshown", "unmatchable"):
            self.totals[what] += report.total(what)
        self.totals["rows"] += report.rows
        self.totals["dead"] += report.dead_letters
        self.totals["filtered"] += report.filtered
        self.totals["added"] += report.added
        self.delivered.update(report.rows_out)
        state = (report.watermark_ms, report.lag_records, dict(self.totals))
        is_idle, self._state = state == self._state and not self.verbose, state
        every_s = self.idle_every_s if is_idle else self.every_s
        more = f"  ({_batches(self._unprinted)} since the last line)" if self._unprinted else ""
        self._unprinted = (
            0 if self._say(line(report, self.totals) + more, always=False, every_s=every_s) else self._unprinted + 1
        )

    def end(self, outputs: Sequence[OutputPlan], *, finished: bool = False, owed: int | None = None) -> None:
        """Print what the whole run did, where its rows are, and which batch is still to be delivered."""
        took = _seconds(round(1_000 * (time.monotonic() - self._began)))
        totals = self.totals
        self.note(
            f"{'finished' if finished else 'stopped'} after {took}: {counted(totals['rows'], 'row')} in, "
            f"{counted(totals['panes'], 'pane')} shown, {_late(totals)}, "
            f"{counted(totals['dead'], 'dead letter')}{_others(totals)}"
        )
        for place in places(outputs, self.delivered):
            self._say(place, always=True)
        if owed is not None:
            self._say(f"batch {owed} is not delivered yet: restart with the same checkpoint", always=True)

    def _say(self, text: str, *, always: bool, every_s: float = 0.0) -> bool:
        """Print the text, unless the last one is too recent; return whether it was printed."""
        if self.quiet:
            return False
        terminal = self.out.isatty()
        now = self.clock()
        if not always and not terminal and now - self._printed < every_s:
            return False
        self._printed = now
        if terminal and not always:
            self._line.rewrite(text, self.out)
        else:
            self._line.leave()
            self.out.write(text + "\n")
            self.out.flush()
        return True


def _batches(number: int) -> str:
    return f"{number:,} more batch{'es' * (number != 1)}"


def line(report: BatchReport, totals: Counts[str]) -> str:
    """Return one batch as a line: speed, watermark and its lag, and what became of the rows so far."""
    rate = report.rows / report.seconds if report.seconds else 0.0
    watermark = report.watermark_ms
    lag = ""
    if MIN_MS < watermark <= LAST_USABLE_MS:
        lag = f" (lag {_seconds(max(0, report.stats.now_ms - watermark))})"
    waiting = f"  {report.lag_records:,} waiting in Kafka" if report.lag else ""
    return (
        f"batch {report.batch}  {counted(report.rows, 'row')}  {counted(round(rate), 'row')}/s  "
        f"watermark {render_time(watermark)}{lag}  "
        f"this run {counted(totals['panes'], 'pane')}, {totals['late']:,} late, "
        f"{counted(totals['dead'], 'dead letter')}{waiting}{_lookups(report)}{_held(report)}{_ahead(report)}"
    )


def places(outputs: Sequence[OutputPlan], delivered: Mapping[str, int]) -> list[str]:
    """Return a line for each output with its rows and sinks; dropped outputs are listed only if they had rows."""
    rows = [
        (output.name, f"{delivered.get(output.name, 0):,}", " and ".join(map(str, output.sinks)))
        for output in outputs
        if output.sinks and (delivered.get(output.name, 0) or not all(isinstance(sink, Drop) for sink in output.sinks))
    ]
    name_width = max((len(name) for name, _, _ in rows), default=0)
    count_width = max((len(count) for _, count, _ in rows), default=0)
    return [
        f"  {name:{name_width}}  {count:>{count_width}} {'row ' if count == '1' else 'rows'}  {sinks}"
        for name, count, sinks in rows
    ]


def _lookups(report: BatchReport) -> str:
    """Return what the lookups of a batch did, with the times of the slowest."""
    asked = report.lookups
    if not asked:
        return ""
    slowest = max(asked.values(), key=lambda stats: stats.p99_ms)
    keys = sum(stats.misses for stats in asked.values())
    hits = sum(stats.hits for stats in asked.values())
    errors = sum(stats.errors for stats in asked.values())
    summary = f"  lookups {keys:,} asked, {hits:,} cached"
    summary += f", p50 {slowest.p50_ms:.0f} ms, p99 {slowest.p99_ms:.0f} ms" if slowest.latency else ""
    return summary + (f", {counted(errors, 'error')}" if errors else "")


def _held(report: BatchReport) -> str:
    for holder in report.holders[:1]:
        if not holder.has_records:
            idle = holder.idle_after_ms
            remedy = "set idle_after?" if idle is None else f"idle after {render_ms(idle)}"
            remedy = "not read to its end" if holder.is_unread else remedy
            return f"  held back by {holder.partition}, which has no record yet ({remedy})"
        if holder.behind_ms >= _WORTH_SAYING_MS:
            since = render_time(holder.since_ms)
            return f"  held back by {holder.partition}: {_seconds(holder.behind_ms)} behind the others, since {since}"
    return ""


def _ahead(report: BatchReport) -> str:
    found = (f"  {name} is waiting, {_seconds(each.by_ms)} ahead of {each.of}" for name, each in report.ahead.items())
    return "".join(found)


def _late(totals: Counts[str]) -> str:
    partly = f" ({totals['partly_late']:,} more for some of their windows)" if totals["partly_late"] else ""
    return f"{totals['late']:,} late{partly}"


def _others(totals: Counts[str]) -> str:
    labels = {"ignored": "ignored", "unshown": "never shown", "filtered": "filtered", "added": "added by map"}
    labels["unmatchable"] = "pairs on which a condition failed"
    return "".join(f", {totals[what]:,} {label}" for what, label in labels.items() if totals[what])


def _seconds(milliseconds: int) -> str:
    """Return a duration without fractions of a second, which would change with every batch."""
    return roughly(milliseconds // 1_000 * 1_000)


@dataclass
class Counter:
    """Prints now and then how many records a command has processed."""

    verb: str
    out: TextIO = field(default_factory=lambda: sys.stderr)
    every_s: float = 1.0
    _began: float = field(default_factory=time.monotonic)
    _shown_at: float = field(default_factory=time.monotonic)
    _width: int = 0

    def update(self, number: int) -> None:
        """Update the count."""
        now = time.monotonic()
        if now - self._shown_at < self.every_s:
            return
        self._shown_at = now
        text = f"{self.verb} {counted(number, 'record')}, {number / (now - self._began):,.0f} a second"
        self.out.write(("\r" + text.ljust(self._width)) if self.out.isatty() else text + "\n")
        self._width = len(text)
        self.out.flush()

    def end(self, words: str) -> None:
        """Print what was done, on standard output."""
        if self._width and self.out.isatty():
            self.out.write("\r" + " " * self._width + "\r")
        sys.stdout.write(words + "\n")
