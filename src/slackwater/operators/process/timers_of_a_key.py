"""The timers of one key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

import polars as pl

from slackwater.base.times import EPOCH, FIRST_USABLE_MS, LAST_USABLE_MS, MAX_MS
from slackwater.operators.process.chunks import EntryChunk, Row, Tree, place_of
from slackwater.operators.process.failures import MisfitError
from slackwater.operators.process.state import Journal
from slackwater.operators.state.pieces import StepState

TIMER: Final = pl.Struct({"at": pl.Int64(), "name": pl.String(), "is_processing": pl.Boolean(), "since": pl.Int64()})
"""The type of a timer in the state of its key."""
APART_TIMER: Final[dict[str, pl.DataType]] = {"at": pl.Int64(), "name": pl.String(), "since": pl.Int64()}
"""The columns of a timer in a chunk."""
INLINE_TIMERS: Final = 256
"""The number of timers up to which they are stored in the row of their key."""
_UNNAMED: Final = {False: ":event", True: ":processing"}
_NAMED: Final = {False: ":event named", True: ":processing named"}
KINDS: Final = {of: (clock, kinds is _NAMED) for kinds in (_UNNAMED, _NAMED) for clock, of in kinds.items()}
"""The names of the trees of timers, which no declared state can have, with their clock and whether they have names."""
Slot = tuple[bool, str, int]
"""What identifies a timer: whether its clock is processing time, its name, and its time if it has none."""
_MS: Final = timedelta(milliseconds=1)


class Timer(NamedTuple):
    """One timer; timers fire in the order of these fields."""

    at: int
    name: str
    is_processing: bool
    since: int
    """The event time of the call that set it, as for state: behind the watermark, the watermark."""


class Timers:
    """The timers of the current key. Unnamed ones are identified by their time; a name has one timer, which moves.

    Few timers are in the state row of the key. Many are in chunks, by their time or, with a name, by its hash.
    """

    def __init__(self, journal: Journal, home: StepState) -> None:
        self._pending: dict[Slot, Timer] = {}
        """The timers at hand."""
        self._trees: dict[str, Tree] = {}
        """The chunks of the other timers, by clock and kind."""
        self._stored: dict[str, Tree] = {}
        self._queues: dict[bool, list[Timer]] = {}
        """The timers at hand as heaps, by clock, once they were looked at; some may be gone."""
        self._journal, self._home = journal, home
        self._fresh: list[Timer] = []
        self.dropped = 0
        """The number of timers that were set too late to fire."""

    @property
    def is_unused(self) -> bool:
        """Whether the current key has no timers, had none, and set none."""
        return not (self._pending or self._trees or self._stored or self._queues or self._fresh)

    def load(self, rows: list[dict[str, Any]] | None) -> None:
        """Load the timers of a key from its state row."""
        if not rows and self.is_unused:
            return
        self._pending = {_slot(timer): timer for timer in (Timer(**row) for row in rows or ())}
        self._trees, self._stored = {}, {}
        self._queues.clear()
        self._fresh.clear()

    def attach(self, found: dict[str, list[EntryChunk]]) -> None:
        """Let the key, whose row was just loaded, have the timers of some chunks as well."""
        self._trees = {of: self._tree(of, found.pop(of)) for of in KINDS if of in found}
        self._stored = {**self._trees}

    def dump(self) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
        """Return the timers for the state row of the key, and the directory of their chunks."""
        if not self._stored and len(self._pending) <= INLINE_TIMERS:
            return [timer._asdict() for timer in self._pending.values()] or None, []
        kinds: dict[str, list[Timer]] = {of: [] for of in self._trees}
        for slot, timer in self._pending.items():
            kinds.setdefault(_kind(slot), []).append(timer)
        inline: list[Timer] = []
        directory: list[dict[str, Any]] = []
        for of, timers in kinds.items():
            tree = self._trees.get(of)
            if tree is None and len(timers) <= INLINE_TIMERS:
                inline += timers
                continue
            tree = self._tree(of) if tree is None else tree
            tree.store((timer.at, timer.name, timer.since) for timer in timers)
            if tree.rows <= INLINE_TIMERS // 4:
                inline += [_timer(of, row) for row in tree.all_rows()]
                tree.drop_all()
            directory += tree.entries()
        for of, tree in self._stored.items():
            if self._trees.get(of) is not tree:
                tree.drop_all()
        self._pending = {_slot(timer): timer for timer in inline}
        return [timer._asdict() for timer in inline] or None, directory

    def set(self, timer: Timer) -> None:
        """Set a timer."""
        self._put(_slot(timer), timer)
        self._fresh.append(timer)

    def drop(self, timer: Timer) -> None:
        """Count a timer that will not fire, and remove the one with the same name."""
        self._put(_slot(timer), None)
        self._journal.append((self,))
        self.dropped += 1

    def delete(self, *, is_processing: bool, name: str, at: int) -> None:
        """Remove the timer with a name, or with a time."""
        self._put((is_processing, name, 0 if name else at), None)

    def due(self, until_ms: int, *, is_processing: bool) -> Iterator[Timer]:
        """Remove and yield the timers of a clock that are due, in order: see `_is_due`.

        A timer that is set in the meantime fires in its turn if that has not passed. Otherwise it waits for the next
        call: a timer that keeps setting itself for the same time must not block everything else.
        """
        for of, tree in self._trees.items():
            if KINDS[of][0] == is_processing:
                self._take(of, tree.read_before(until_ms + is_processing))
        if is_processing not in self._queues:
            self._queues[is_processing] = [timer for timer in self._pending.values() if timer[2] == is_processing]
            heapify(self._queues[is_processing])
        queue = self._queues[is_processing]
        waiting: set[Timer] = set()
        while queue and _is_due(queue[0], until_ms, is_processing=is_processing):
            timer = heappop(queue)
            slot = _slot(timer)
            if timer in waiting or self._pending.get(slot) != timer:
                continue  # deleted or moved in the meantime
            del self._pending[slot]
            self._changed(slot)
            self._fresh.clear()
            yield timer
            waiting.update(fresh for fresh in self._fresh if fresh[:2] <= timer[:2])
        for timer in waiting:
            heappush(queue, timer)

    def clear(self) -> None:
        """Remove all timers."""
        self._pending, self._trees = {}, {}
        self._queues.clear()

    def __bool__(self) -> bool:
        return bool(self._pending or self._trees)

    def next(self, wake: int, due: int) -> tuple[int, int]:
        """Return when the key must next be processed, given when it must be for other reasons; after `dump`."""
        if (at := self._first_ms(is_processing=False)) is not None:
            wake = min(wake, at + 1)  # an event at the time of the timer comes first
        if (at := self._first_ms(is_processing=True)) is not None:
            # At the end of time, there is nothing to wait for.
            wake, due = min(wake, MAX_MS), min(due, at)
        return wake, due

    def _first_ms(self, *, is_processing: bool) -> int | None:
        """Return when the first timer of a clock is due."""
        firsts = [timer.at for timer in self._pending.values() if timer.is_processing == is_processing]
        firsts += [tree.first_ms for of, tree in self._trees.items() if tree.chunks and KINDS[of][0] == is_processing]
        return min(firsts, default=None)

    def _put(self, slot: Slot, timer: Timer | None) -> None:
        if self._trees and (tree := self._trees.get(_kind(slot))) is not None:
            self._take(_kind(slot), tree.read_at(_place(slot[1], slot[2])))
        self._journal.append((self, slot, self._pending.get(slot)))
        self._replace(slot, timer)

    def _replace(self, slot: Slot, timer: Timer | None) -> None:
        self._changed(slot)
        if timer is None:
            self._pending.pop(slot, None)
            return
        self._pending[slot] = timer
        if timer.is_processing in self._queues:
            heappush(self._queues[timer.is_processing], timer)

    def _changed(self, slot: Slot) -> None:
        if self._trees and (tree := self._trees.get(_kind(slot))) is not None:
            tree.change(_place(slot[1], slot[2]))

    def _take(self, of: str, rows: list[Row]) -> None:
        """Add the timers of chunks to those at hand."""
        queue = self._queues.get(KINDS[of][0])
        for row in rows:
            timer = _timer(of, row)
            self._pending[_slot(timer)] = timer
            if queue is not None:
                heappush(queue, timer)

    def _tree(self, of: str, directory: list[EntryChunk] | None = None) -> Tree:
        tree = Tree(self._home, of, APART_TIMER, lambda row: _place(row[1], row[0]), directory or ())
        self._trees[of] = tree
        return tree

    def undo(self, *before: Any) -> None:  # noqa: ANN401  a slot and its timer, or nothing
        """Restore the previous timer of a slot; without arguments, undo the count of a dropped timer."""
        if before:
            self._replace(*before)
        else:
            self.dropped -= 1


def _kind(slot: Slot) -> str:
    return _NAMED[slot[0]] if slot[1] else _UNNAMED[slot[0]]


def _place(name: str, at: int) -> int:
    return place_of(name) if name else at


def _timer(of: str, row: Row) -> Timer:
    return Timer(row[0], row[1], KINDS[of][0], row[2])


def _is_due(timer: Timer, until_ms: int, *, is_processing: bool) -> bool:
    """Return whether the watermark has passed an event-time timer, or processing time has reached the other.

    An event at the watermark is on time, so a timer at the watermark still waits for it.
    """
    if timer.is_processing != is_processing:
        return False
    return timer.at <= until_ms if is_processing else timer.at < until_ms


def _slot(timer: Timer) -> Slot:
    return (timer.is_processing, timer.name, 0 if timer.name else timer.at)


def milliseconds(when: object, call: str) -> int:
    """Return a user's datetime in epoch milliseconds, rounded up, or fail."""
    if not isinstance(when, datetime) or when.tzinfo is None:
        raise MisfitError(f"{call} takes a datetime with a time zone, such as ctx.event_time; got {when!r:.80}")
    return -((EPOCH - when) // _MS)


def moment(milliseconds: int) -> datetime:
    """Return epoch milliseconds as a datetime, clamped to the usable range."""
    return EPOCH + timedelta(milliseconds=min(max(milliseconds, FIRST_USABLE_MS), LAST_USABLE_MS))
