"""Running the user's code on the events and timers of one key after another, in plain Python.

1. The state row of a key is loaded into the cells.
2. `on_event` and `on_timer` are called; the journal records their changes until the call has ended. If a call fails,
   what it left to run (a generator's `finally`) runs first; then its changes are undone from the journal, and its event
   becomes a dead letter.
3. The values of the cells are dumped into the columns of the new state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any

from slackwater.base.expressions import FAILURES
from slackwater.base.times import MAX_MS, MIN_MS, render_time
from slackwater.operators.process.base import Context, Process
from slackwater.operators.process.call_context import Acting, CallContext
from slackwater.operators.process.chunks import EntryChunk, chunks_of
from slackwater.operators.process.emitting import NO_EVENT, Emitter
from slackwater.operators.process.failures import MOST_LETTERS, MisfitError, described, ended
from slackwater.operators.process.state import NEVER_MS, Journal, Moment, State
from slackwater.operators.process.state_of_several import StateOfSeveral
from slackwater.operators.process.timers_of_a_key import Timer, Timers, moment
from slackwater.operators.state.pieces import StepState


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work for some keys in one batch."""

    keys: list[tuple[Any, ...]]
    states: list[list[Any]]
    """The state columns, with a value for each key; the timers and the directory of chunks are last."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """The events, sorted by key, then in the order in which they are processed."""
    times: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The end position of each key's events."""
    watermark_ms: int
    floor_ms: int
    """The watermark of the batch before: what had expired by then is gone, even if a chunk still has it."""
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


class Running:
    """Runs one process in one key group, during one batch."""

    def __init__(
        self,
        process: Process,
        states: Mapping[str, State],
        emitters: Mapping[str, Emitter],
        results: Emitter,
        home: StepState,
    ) -> None:
        self._process, self._home = copy.copy(process), home
        self._journal: Journal = []
        self._event_moment, self._moment = Moment(), Moment()
        self._timers = Timers(self._journal, home)
        self._cells = [copy.copy(state) for state in states.values()]
        self._columns: list[tuple[State, slice]] = []
        at = 0
        for name, cell in zip(states, self._cells, strict=True):
            cell.bind(name, self._event_moment if cell.clock == "event" else self._moment, self._journal, home)
            self._process.__dict__[name] = cell
            self._columns.append((cell, slice(at, at := at + len(cell.columns(name)))))
        self._own = self._process.__dict__
        self._named = list(zip(states, self._cells, strict=True))
        self._event_cells = [cell for cell in self._cells if cell.clock == "event"]
        self._results = results
        self._acting = Acting(
            timers=self._timers,
            emitters=emitters,
            journal=self._journal,
            moment=self._event_moment,
            has_on_timer=type(process).on_timer is not Process.on_timer,
        )
        self._key: Any = None
        self._event_ms = MIN_MS
        self._unclosed: list[Any] = []
        """Generators that refuse to end; kept, so that they are not resumed while the state is another key's."""

    def run(self, work: Work) -> Done:
        """Process the work, key by key."""
        width = len(work.states)
        done = Done(states=[[] for _ in range(width)], wakes=[], dues=[])
        acting = self._acting
        acting.watermark_ms, acting.now_ms = work.watermark_ms, work.now_ms
        self._moment.ms = work.now_ms
        for cell in self._cells:
            cell.dead_ms = work.now_ms - cell.ttl_ms  # for event-time cells, `_set_time` replaces it
        for cell in self._event_cells:
            cell.gone_ms = work.floor_ms - cell.ttl_ms
        start = 0
        ends = work.ends or [0] * len(work.keys)
        for place, (values, end) in enumerate(zip(work.keys, ends, strict=True)):
            acting.place, acting.values, acting.is_ending = place, values, False
            self._key = values[0] if len(values) == 1 else values
            self._load([column[place] for column in work.states])
            if work.in_order:
                self._in_order(work, start, end, done)
            else:
                self._as_they_come(work, start, end, done)
            self._dump(done, work)
            start = end
        for cell in self._cells:
            cell.unbind()
        done.dropped_timers = self._timers.dropped
        return done

    def _load(self, row: list[Any]) -> None:
        for cell, columns in self._columns:
            cell.load(*row[columns])
        self._timers.load(row[-2])
        if row[-1] is not None:
            self._attach(chunks_of(row[-1]))

    def _attach(self, found: dict[str, list[EntryChunk]]) -> None:
        """Let the cells know of their chunks; those of cells that are no longer declared are dropped."""
        self._timers.attach(found)
        for name, cell in self._named:
            if name in found and isinstance(cell, StateOfSeveral):
                cell.attach(found.pop(name))
        for chunk in (chunk for chunks in found.values() for chunk in chunks):
            self._home.drop_chunk(chunk.seq, rows=chunk.rows, size=chunk.bytes)

    def _dump(self, done: Done, work: Work) -> None:
        """Add the state row of the key to the columns, and when the key must next be processed."""
        if self._journal:
            self._undo()
        is_over = work.watermark_ms >= MAX_MS
        if is_over:
            self._timers.clear()
        self._set_time(work.watermark_ms)  # no later event or timer can see what has expired by now
        row: list[Any] = []
        apart: list[dict[str, Any]] = []
        wake, due = MAX_MS + 1, MAX_MS
        for cell in self._cells:
            if is_over and cell.ttl_ms < NEVER_MS:
                cell.clear_unseen()
            row += cell.dump()
            if cell.tree is not None:
                apart += cell.tree.entries()
            oldest = cell.oldest_ms
            if oldest is None or cell.ttl_ms >= NEVER_MS:
                continue
            if cell.clock == "event":
                wake = min(wake, oldest + cell.ttl_ms + 1)
            else:
                # At the end of time, there is nothing to wait for.
                wake, due = min(wake, MAX_MS), min(due, oldest + cell.ttl_ms + 1)
        timers = None
        if not self._timers.is_unused:
            timers, directory = self._timers.dump()
            apart += directory
            wake, due = self._timers.next(wake, due)
        row += [timers, apart or None]
        for column, value in zip(done.states, row, strict=True):
            column.append(value)
        done.wakes.append(wake)
        done.dues.append(due)

    def _as_they_come(self, work: Work, start: int, end: int, done: Done) -> None:
        watermark_ms, on_event = work.watermark_ms, self._process.on_event
        self._fire_all(work, done)
        for place in range(start, end):
            self._event_ms = time_ms = work.times[place]
            self._acting.event = place
            self._set_time(max(watermark_ms, time_ms))
            if message := self._call(on_event, work.events[place]):
                done.failed[place] = message

    def _in_order(self, work: Work, start: int, end: int, done: Done) -> None:
        on_event = self._process.on_event
        for place in range(start, end):
            time_ms = work.times[place]
            if self._timers:
                self._fire(time_ms, done)
            self._event_ms = time_ms
            self._acting.event = place
            self._set_time(time_ms)
            if message := self._call(on_event, work.events[place]):
                done.failed[place] = message
        self._fire_all(work, done)

    def _set_time(self, time_ms: int) -> None:
        """Set the event time for the state of the current key: it decides what has expired, and is stored by writes."""
        self._event_moment.ms = time_ms
        for cell in self._event_cells:
            cell.dead_ms = time_ms - cell.ttl_ms

    def _fire_all(self, work: Work, done: Done) -> None:
        """Fire the timers that are due; at the end of time, only those already set, because a timer may set another."""
        self._acting.is_ending = work.watermark_ms >= MAX_MS
        if work.fires_event:
            self._fire(work.watermark_ms, done)
        if work.fires_processing:
            self._fire_processing(work, done)

    def _fire(self, until_ms: int, done: Done) -> None:
        """Call `on_timer` for the event-time timers before `until_ms`, each at its own time, however long ago."""
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
        self._acting.event = NO_EVENT
        if message := self._call(self._process.on_timer, moment(timer.at), timer.name):
            message = f"timer of {render_time(timer.at)}: {message}"[:MOST_LETTERS]
            done.failed_timers.append((self._acting.place, timer, message))

    def _call(self, method: Callable[[Any, Context], Any], given: object, timer: str = "") -> str:
        """Call one of the user's methods; if it fails, undo its changes and return the error message."""
        if self._journal:
            self._undo()
        before, made = len(self._results.rows), None
        ctx = CallContext(self._acting, self._key, timer, self._event_ms)
        try:
            made = method(given, ctx)
            if made is not None:
                self._collect(made)
            for name, cell in self._named:
                if self._own.get(name) is not cell:
                    raise MisfitError  # described below
        except FAILURES as error:
            if isinstance(error, MemoryError):
                raise
            message = described(error)
            if more := ended(made, error):
                self._unclosed.append(made)
                message = f"{message} | {more}"[:MOST_LETTERS]
        else:
            self._journal.clear()
            ctx.is_over = True
            return ""
        # Out here the error is gone, and with it the frames that may hold further generators.
        del made
        self._undo()
        self._results.undo(before)
        ctx.is_over = True
        return self._assigned() or message

    def _collect(self, made: Any) -> None:  # noqa: ANN401  the user's own
        """Add the results that a call returned or yields."""
        if type(made) is not GeneratorType and isinstance(made, Mapping | str | bytes):
            raise MisfitError(f"results are yielded, one dictionary each; got {made!r:.80}")
        acting, results, event_ms = self._acting, self._results, self._event_ms
        for row in made:
            results.add(results.checked(row, acting.values), acting.place, event_ms, acting.event)

    def _undo(self) -> None:
        """Undo the changes in the journal: those of a failed call, or made outside any call."""
        for changed, *noted in reversed(self._journal):
            changed.undo(*noted)
        self._journal.clear()

    def _assigned(self) -> str:
        """Restore the cells that the user's code has replaced; return the error message, or an empty string."""
        replaced = [name for name, cell in self._named if self._own.get(name) is not cell]
        if not replaced:
            return ""
        name, got = replaced[0], self._own.get(replaced[0])
        self._own.update(self._named)
        use = f"use self.{name}.set(...) or another of them"
        return f"state is changed by its methods; got self.{name} = {got!r:.80}; {use}"
