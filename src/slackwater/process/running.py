"""Running the user's code on the events and timers of one key after another, in plain Python.

1. The state row of a key is loaded into the cells.
2. `on_event` and `on_timer` are called; the journal records their changes until the call has ended. If a call fails,
   its changes are undone from the journal, and its event becomes a dead letter.
3. The values of the cells are dumped into the columns of the new state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import GeneratorType
from typing import Any

from slackwater.errors import near_miss
from slackwater.ground.expressions import FAILURES
from slackwater.ground.times import MAX_MS, MIN_MS, render_time
from slackwater.process.base import Context, Process
from slackwater.process.emitting import Outlet
from slackwater.process.failures import MOST_LETTERS, MisfitError, described
from slackwater.process.state import NEVER_MS, Clock, Journal, Moment, State
from slackwater.process.timers import Timer, Timers, milliseconds, moment


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work for some keys in one batch."""

    keys: list[tuple[Any, ...]]
    states: list[list[Any]]
    """The state columns, with a value for each key; the timers are last."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """The events, sorted by key, then in the order in which they are processed."""
    times: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The end position of each key's events."""
    watermark_ms: int
    now_ms: int
    in_order: bool = False
    """Whether events and timers are interleaved by event time; else there are only events, or only timers."""
    fires_event: bool = False
    """Whether event-time timers may be due."""
    fires_processing: bool = False


@dataclass
class Done:
    """The result of the work: the new state columns, and the failures."""

    states: list[list[Any]]
    wakes: list[int]
    """The watermark at which each key must next be processed; beyond the end of time for never."""
    dues: list[int]
    """The processing time at which each key must next be processed."""
    failed: dict[int, str] = field(default_factory=dict)
    """The messages of events that failed, by position."""
    failed_timers: list[tuple[int, Timer, str]] = field(default_factory=list)
    dropped_timers: int = 0
    """The number of timers that were set at the end of time, and so never fire."""


class Running(Context):
    """Runs one process in one key group, during one batch; it is also the context of its calls."""

    def __init__(
        self, process: Process, states: Mapping[str, State], outlets: Mapping[str, Outlet], results: Outlet
    ) -> None:
        self._process = copy.copy(process)
        self._journal: Journal = []
        self._event_moment, self._moment = Moment(), Moment()
        self._timers = Timers(self._journal)
        self._cells = [copy.copy(state) for state in states.values()]
        self._columns: list[tuple[State, slice]] = []
        at = 0
        for name, cell in zip(states, self._cells, strict=True):
            cell.bind(name, self._event_moment if cell.clock == "event" else self._moment, self._journal)
            self._process.__dict__[name] = cell
            self._columns.append((cell, slice(at, at := at + len(cell.columns(name)))))
        self._own = self._process.__dict__
        self._named = list(zip(states, self._cells, strict=True))
        self._event_cells = [cell for cell in self._cells if cell.clock == "event"]
        self._outlets, self._results = outlets, results
        self._has_on_timer = type(process).on_timer is not Process.on_timer
        self._place = 0
        self._is_ending = False
        self._values: tuple[Any, ...] = ()
        self._event_ms = self._watermark_ms = self._now_ms = MIN_MS
        self.key: Any = None
        self.timer = ""

    def run(self, work: Work) -> Done:
        """Process the work, key by key."""
        width = len(work.states)
        done = Done(states=[[] for _ in range(width)], wakes=[], dues=[])
        self._watermark_ms, self._now_ms = work.watermark_ms, work.now_ms
        self._moment.ms = work.now_ms
        for cell in self._cells:
            cell.dead_ms = work.now_ms - cell.ttl_ms  # for event-time cells, `_set_time` replaces it
        start = 0
        ends = work.ends or [0] * len(work.keys)
        for place, (values, end) in enumerate(zip(work.keys, ends, strict=True)):
            self._place, self._values = place, values
            self.key = values[0] if len(values) == 1 else values
            self._is_ending = False
            self._load([column[place] for column in work.states])
            if work.in_order:
                self._in_order(work, start, end, done)
            else:
                self._as_they_come(work, start, end, done)
            self._dump(done, work)
            start = end
        done.dropped_timers = self._timers.dropped
        return done

    def _load(self, row: list[Any]) -> None:
        for cell, columns in self._columns:
            cell.load(*row[columns])
        self._timers.load(row[-1])

    def _dump(self, done: Done, work: Work) -> None:
        """Add the state row of the key to the columns, and when the key must next be processed."""
        is_over = work.watermark_ms >= MAX_MS
        if is_over:
            self._timers.clear()
        self._set_time(work.watermark_ms)  # no later event or timer can see what has expired by now
        row: list[Any] = []
        wake, due = MAX_MS + 1, MAX_MS
        for cell in self._cells:
            if is_over and cell.ttl_ms < NEVER_MS:
                cell.clear_unseen()
            row += cell.dump()
            oldest = cell.oldest_ms
            if oldest is None or cell.ttl_ms >= NEVER_MS:
                continue
            if cell.clock == "event":
                wake = min(wake, oldest + cell.ttl_ms + 1)
            else:
                # At the end of time, there is nothing to wait for.
                wake, due = min(wake, MAX_MS), min(due, oldest + cell.ttl_ms + 1)
        if (at := self._timers.first_ms(is_processing=False)) is not None:
            wake = min(wake, at)
        if (at := self._timers.first_ms(is_processing=True)) is not None:
            wake, due = min(wake, MAX_MS), min(due, at)
        row.append(self._timers.dump())
        for column, value in zip(done.states, row, strict=True):
            column.append(value)
        done.wakes.append(wake)
        done.dues.append(due)

    def _as_they_come(self, work: Work, start: int, end: int, done: Done) -> None:
        watermark_ms, on_event = work.watermark_ms, self._process.on_event
        self._fire_all(work, done)
        for place in range(start, end):
            self._event_ms = time_ms = work.times[place]
            self._set_time(max(watermark_ms, time_ms))
            if trouble := self._call(on_event, work.events[place]):
                done.failed[place] = trouble

    def _in_order(self, work: Work, start: int, end: int, done: Done) -> None:
        on_event = self._process.on_event
        for place in range(start, end):
            time_ms = work.times[place]
            if self._timers:
                self._fire(time_ms, done)
            self._event_ms = time_ms
            self._set_time(time_ms)
            if trouble := self._call(on_event, work.events[place]):
                done.failed[place] = trouble
        self._fire_all(work, done)

    def _set_time(self, time_ms: int) -> None:
        """Set the event time for the state of the current key: it decides what has expired, and is stored by writes."""
        self._event_moment.ms = time_ms
        for cell in self._event_cells:
            cell.dead_ms = time_ms - cell.ttl_ms

    def _fire_all(self, work: Work, done: Done) -> None:
        """Fire the timers that are due; at the end of time, only those already set, because a timer may set another."""
        self._is_ending = work.watermark_ms >= MAX_MS
        if work.fires_event:
            self._fire(work.watermark_ms, done)
        if work.fires_processing:
            self._fire_processing(work, done)

    def _fire(self, until_ms: int, done: Done) -> None:
        """Call `on_timer` for the event-time timers up to `until_ms`, each at its own time, however long ago."""
        for timer in self._timers.due(until_ms, is_processing=False):
            self._event_ms = timer.at
            self._set_time(max(timer.at, timer.since))  # one in the past sees no more than the call that set it
            self._on_timer(timer, done)

    def _fire_processing(self, work: Work, done: Done) -> None:
        is_over = work.watermark_ms >= MAX_MS
        for timer in self._timers.due(MAX_MS if is_over else work.now_ms, is_processing=True):
            self._event_ms = timer.since if is_over else max(timer.since, work.watermark_ms)
            self._set_time(self._event_ms)
            self._on_timer(timer, done)

    def _on_timer(self, timer: Timer, done: Done) -> None:
        self.timer = timer.name
        if trouble := self._call(self._process.on_timer, moment(timer.at)):
            message = f"timer of {render_time(timer.at)}: {trouble}"[:MOST_LETTERS]
            done.failed_timers.append((self._place, timer, message))
        self.timer = ""

    def _call(self, method: Callable[[Any, Context], Any], given: object) -> str:
        """Call one of the user's methods; if it fails, undo its changes and return the error message."""
        results = self._results
        before = len(results.rows)
        try:
            made = method(given, self)
            if made is not None:
                if type(made) is not GeneratorType and isinstance(made, Mapping | str | bytes):
                    raise MisfitError(f"results are yielded, one dictionary each; got {made!r:.80}")
                for row in made:
                    results.add(results.checked(row, self._values), self._place, self._event_ms)
            for name, cell in self._named:
                if self._own.get(name) is not cell:
                    raise MisfitError  # described below
        except FAILURES as error:
            if isinstance(error, MemoryError):
                raise
            trouble = self._assigned() or described(error)
            for changed, *noted in reversed(self._journal):
                changed.undo(*noted)
            self._journal.clear()
            results.undo(before)
            return trouble
        self._journal.clear()
        return ""

    def _assigned(self) -> str:
        """Restore the cells that the user's code has replaced; return the error message, or an empty string."""
        replaced = [name for name, cell in self._named if self._own.get(name) is not cell]
        if not replaced:
            return ""
        name, got = replaced[0], self._own.get(replaced[0])
        self._own.update(self._named)
        use = f"use self.{name}.set(...) or another of them"
        return f"state is changed by its methods; got self.{name} = {got!r:.80}; {use}"

    @property
    def event_time(self) -> datetime:
        """The time of the event, or of the timer."""
        return moment(self._event_ms)

    @property
    def watermark(self) -> datetime | None:
        """The watermark in effect."""
        return None if self._watermark_ms <= MIN_MS else moment(self._watermark_ms)

    @property
    def processing_time(self) -> datetime:
        """The processing time of the batch."""
        return moment(self._now_ms)

    def set_timer(self, when: datetime, *, clock: Clock = "event", name: str = "") -> None:
        """Set a timer of the current key."""
        if not self._has_on_timer:
            raise MisfitError("set_timer needs a method on_timer in the class")
        at, is_processing = milliseconds(when, "set_timer"), _is_processing(clock)
        timer = Timer(at, _name(name), is_processing, self._event_ms)
        if self._is_ending:
            self._timers.drop(timer)
        else:
            self._timers.set(timer)

    def delete_timer(self, when: datetime | None = None, *, clock: Clock = "event", name: str = "") -> None:
        """Remove a timer of the current key."""
        at = 0 if name else milliseconds(when, "delete_timer")
        self._timers.delete(is_processing=_is_processing(clock), name=_name(name), at=at)

    def emit(self, output: str, row: Mapping[str, Any]) -> None:
        """Send a row to an output that the class declares."""
        outlet = self._outlets.get(output)
        if outlet is None:
            hint = near_miss(str(output), self._outlets)
            raise MisfitError(f"emit takes an output that the class declares; got {output!r}{hint}")
        self._journal.append((outlet, len(outlet.rows)))
        outlet.add(outlet.checked(row, self._values), self._place, self._event_ms)


def _is_processing(clock: object) -> bool:
    if clock not in ("event", "processing"):
        raise MisfitError(f'`clock` must be "event" or "processing"; got {clock!r:.80}')
    return clock == "processing"


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise MisfitError(f"a timer's name is a text; got {name!r:.80}")
    return name
