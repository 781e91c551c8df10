"""What a windowed step must show, batch by batch: slow, obvious, and without a line of the engine.

A step gets rows (key, event time, tag) and shows panes of tags. Time is a whole number of milliseconds.

- The watermark W in force during a batch was decided after the batch before. A window is complete when W >= end,
  and forgotten when W >= end + lateness. A row is late when every window it belongs to is forgotten.
- The first step of a chain fires by W, then takes the batch's rows, judged by W. A step behind it takes rows that the
  step before shows in the same batch: it judges them by the W of the batch before, then fires by W, both less the
  latenesses of the steps before it.
- A batch takes all its rows before it asks a window for a pane, and asks once for each reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.property.chain_definitions import END, Row, Step


@dataclass(frozen=True)
class Pane:
    """A row of the results."""

    key: object
    start: int
    end: int
    tags: tuple[str, ...]
    pane: str
    is_retraction: bool = False


@dataclass(frozen=True)
class Late:
    """A row of the late output."""

    tag: str
    late_by: int
    windows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Time:
    previous: int
    watermark: int
    now: int
    is_first: bool

    @property
    def judge(self) -> int:
        """The watermark that decides whether a row of this batch is late."""
        return self.watermark if self.is_first else self.previous


@dataclass(eq=False)
class Open:
    """A window of a key that is not forgotten."""

    key: object
    start: int
    end: int
    rows: list[Row] = field(default_factory=list)
    new: list[Row] = field(default_factory=list)
    """Its rows that no pane has shown."""
    shown: list[Pane] = field(default_factory=list)
    """What a reader of a retracting step holds of it: more than one where sessions became one."""
    is_done: bool = False
    due: int | None = None
    tick: int | None = None


@dataclass
class Shown:
    """What a step does in one batch."""

    panes: list[Pane] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Each row in one account: on_time, refired (behind the watermark, but not late), late, no_window or ignored.

    Besides: rows partly_ignored, by some of their windows; rows of windows unshown, taken and then never in a pane.
    """


class Model:
    """One step, from its first batch to the end of time."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.open: list[Open] = []
        self.taken: list[Row] = []
        self.out = Shown()

    def batch(self, rows: Iterable[Row], time: Time) -> Shown:
        """Return what the step shows in a batch; `rows` come in the order of their arrival."""
        self.out = Shown()
        if time.is_first:
            self._advance(time)
        self._add(list(rows), time)
        if not time.is_first:
            self._advance(time)
        return self.out

    def _add(self, rows: list[Row], time: Time) -> None:
        touched = self._add_to_sessions(rows, time) if self.step.window.kind == "session" else self._assign(rows, time)
        if self.step.window.kind == "sliding":
            fresh = {row.tag for row in rows}
            for window in self._looking_back(self.open):
                if window.end <= time.judge and fresh & {row.tag for row in window.rows}:
                    self._fire(window, "late")
            return
        for window in touched:
            passed = window.end <= time.judge
            wanted = self.step.trigger.late_count if passed else self.step.trigger.early_count
            if wanted is not None and len(window.new) >= wanted:
                self._fire(window, "late" if passed else "early")

    def _assign(self, rows: list[Row], time: Time) -> list[Open]:
        touched = []
        for row in rows:
            places = self.step.window.places(row.ts)
            kept = [(start, end) for start, end in places if end + self.step.lateness > time.judge]
            windows = [self._window(row.key, start, end) for start, end in kept]
            self._judge(row, places, windows, time)
            for window in windows:
                if not window.is_done:
                    self._take(window, row, time)
                    touched += [window] if window not in touched else []
        return touched

    def _window(self, key: object, start: int, end: int) -> Open:
        for window in self.open:
            if (window.key, window.start, window.end) == (key, start, end):
                return window
        self.open.append(Open(key, start, end))
        return self.open[-1]

    def _judge(self, row: Row, places: list[tuple[int, int]], kept: list[Open], time: Time) -> None:
        """Put the row into its one account; `kept` are those of its windows that are not forgotten."""
        taking = [window for window in kept if not window.is_done]
        if not places:
            self.out.counts["no_window"] += 1
        elif not kept:
            self.out.counts["late"] += 1
            self.out.late.append(Late(row.tag, time.judge - row.ts, tuple(places)))
        elif not taking:
            self.out.counts["ignored"] += 1
        else:
            behind = any(window.end <= time.judge for window in taking)
            self.out.counts["refired" if behind else "on_time"] += 1
            self.out.counts["partly_ignored"] += len(taking) < len(kept)
            self.taken.append(row)

    def _take(self, window: Open, row: Row, time: Time) -> None:
        """Add a row to its window."""
        trigger = self.step.trigger
        if trigger.early_every is not None and not (trigger.on_time and window.end <= time.judge):
            if window.due is None:
                window.due = time.now + trigger.early_every
            elif not window.new:
                self._catch_up(window, time)  # what was due while nothing was new is not shown later
        if trigger.early_event_time is not None and window.tick is None:
            window.tick = row.ts - row.ts % trigger.early_event_time + trigger.early_event_time
        window.rows.append(row)
        window.new.append(row)

    def _add_to_sessions(self, rows: list[Row], time: Time) -> list[Open]:
        """A row is judged with the whole session it becomes part of."""
        touched: list[Open] = []
        taken: list[Row] = []
        waiting = list(rows)
        # First what is not late by itself, then what touches a session that is remembered, until nothing does.
        while ready := [row for row in waiting if row.ts + self.step.window.gap + self.step.lateness > time.judge] or [
            row for row in waiting if self._touched(row)
        ]:
            for row in ready:
                waiting.remove(row)
                taken.append(row)
                session = self._joined(row, rows)
                if not session.is_done:
                    self._take(session, row, time)
                    touched.append(session)
        for row in waiting:
            self._judge(row, self.step.window.places(row.ts), [], time)
        for row in taken:
            [session] = [each for each in self.open if each.key == row.key and each.start <= row.ts < each.end]
            self._judge(row, [(session.start, session.end)], [session], time)
        return [
            session
            for number, session in enumerate(touched)
            if session in self.open and session not in touched[:number]
        ]

    def _touched(self, row: Row) -> list[Open]:
        start, end = row.ts, row.ts + self.step.window.gap
        mine = [session for session in self.open if session.key == row.key]
        if self.step.window.touching == "merge":
            return [session for session in mine if session.start <= end and start <= session.end]
        return [session for session in mine if session.start < end and start < session.end]

    def _joined(self, row: Row, batch: list[Row]) -> Open:
        """Return the one session that `row`, one of a batch, makes of those it touches."""
        parts = self._touched(row)
        session = Open(row.key, row.ts, row.ts + self.step.window.gap)
        for part in parts:
            self.open.remove(part)
            session.start, session.end = min(session.start, part.start), max(session.end, part.end)
            session.rows += part.rows
            session.new += part.new
            session.shown += part.shown
            session.is_done = session.is_done or part.is_done
        session.due = min((part.due for part in parts if part.due is not None), default=None)
        session.tick = min((part.tick for part in parts if part.tick is not None), default=None)
        if session.is_done:
            self.out.counts["unshown"] += len([each for each in session.new if each not in batch])
            session.new = []
        self.open.append(session)
        return session

    def _looking_back(self, instants: Iterable[Open]) -> list[Open]:
        """Give each instant of a sliding window all rows of the time before it."""
        for window in (instants := list(instants)):
            window.rows = [row for row in self.taken if row.key == window.key and window.start <= row.ts < window.end]
        return instants

    def _advance(self, time: Time) -> None:
        for window in self._looking_back(self.open) if self.step.window.kind == "sliding" else list(self.open):
            self._show_early(window, time)
            if time.previous < window.end <= time.watermark:
                if self.step.trigger.on_time and (self.step.trigger.repeat_unchanged or window.new):
                    self._fire(window, "on_time")
                window.is_done = window.is_done or self.step.trigger.is_final
            if time.watermark == END or window.end + self.step.lateness <= time.watermark:
                self.open.remove(window)
                if self.step.on_close == "flush":
                    if window.new:
                        self._fire(window, "late")
                elif not window.is_done:
                    self.out.counts["unshown"] += len(window.new)

    def _show_early(self, window: Open, time: Time) -> None:
        """Show the panes that processing time calls for, and then those of event time."""
        trigger = self.step.trigger
        passed = window.end <= time.previous
        if window.due is not None and window.due <= time.now and not (passed and trigger.on_time):
            if window.new:
                self._fire(window, "late" if passed else "early")
            self._catch_up(window, time)
        if passed or time.watermark == time.previous:
            return
        last = min(time.watermark, window.end - 1)
        # The end of time is no multiple of anything: a window without end has only its last pane then.
        if window.tick is not None and trigger.early_event_time is not None and last < END - 1:
            while window.tick < last:
                self._fire(window, "early")
                window.tick += trigger.early_event_time

    def _catch_up(self, window: Open, time: Time) -> None:
        assert window.due is not None
        assert self.step.trigger.early_every is not None
        while window.due <= time.now:
            window.due += self.step.trigger.early_every

    def _fire(self, window: Open, pane: str) -> None:
        rows = window.new if self.step.accumulation == "discarding" else window.rows
        if window.is_done or not rows:
            return
        tags = tuple(sorted(row.tag for row in rows))
        window.new = []
        now = Pane(window.key, window.start, window.end, tags, pane)
        if self.step.accumulation == "retracting":
            before = [(was.start, was.end, was.tags) for was in window.shown]
            if before == [(now.start, now.end, now.tags)]:
                return
            for was in window.shown:
                self.out.panes.append(Pane(was.key, was.start, was.end, was.tags, pane, is_retraction=True))
            window.shown = [now]
        self.out.panes.append(now)
        window.is_done = self.step.trigger.once
