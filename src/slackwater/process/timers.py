"""The timers of one key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

import polars as pl

from slackwater.ground.times import EPOCH, FIRST_USABLE_MS, LAST_USABLE_MS
from slackwater.process.failures import MisfitError
from slackwater.process.state import Journal

TIMER: Final = pl.Struct({"at": pl.Int64(), "name": pl.String(), "is_processing": pl.Boolean(), "since": pl.Int64()})
"""The type of a timer in the state of its key."""
_MS: Final = timedelta(milliseconds=1)


class Timer(NamedTuple):
    """One timer; timers fire in the order of these fields."""

    at: int
    name: str
    is_processing: bool
    since: int
    """The event time of the call that set it, as for state: behind the watermark, the watermark."""


class Timers:
    """The timers of the current key. Unnamed ones are identified by their time; a name has one timer, which moves."""

    def __init__(self, journal: Journal) -> None:
        self._pending: dict[tuple[bool, str, int], Timer] = {}
        self._journal = journal
        self._fresh: list[Timer] = []
        self.dropped = 0
        """The number of timers that were set too late to fire."""

    def load(self, rows: list[dict[str, Any]] | None) -> None:
        """Load the timers of a key from its state row."""
        timers = [Timer(**row) for row in rows or ()]
        self._pending = {_slot(timer): timer for timer in timers}
        self._fresh.clear()

    def dump(self) -> list[dict[str, Any]] | None:
        """Return the timers for the state row of the key."""
        return [timer._asdict() for timer in self._pending.values()] or None

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
        queue = [timer for timer in self._pending.values() if _is_due(timer, until_ms, is_processing=is_processing)]
        heapify(queue)
        while queue:
            timer = heappop(queue)
            if self._pending.get(_slot(timer)) != timer:
                continue  # deleted or moved in the meantime
            del self._pending[_slot(timer)]
            self._fresh.clear()
            yield timer
            for fresh in self._fresh:
                if _is_due(fresh, until_ms, is_processing=is_processing) and fresh[:2] > timer[:2]:
                    heappush(queue, fresh)

    def clear(self) -> None:
        """Remove all timers."""
        self._pending = {}

    def __bool__(self) -> bool:
        return bool(self._pending)

    def first_ms(self, *, is_processing: bool) -> int | None:
        """Return when the first timer of a clock is due."""
        if not self._pending:
            return None
        return min((timer.at for timer in self._pending.values() if timer.is_processing == is_processing), default=None)

    def _put(self, slot: tuple[bool, str, int], timer: Timer | None) -> None:
        self._journal.append((self, slot, self._pending.get(slot)))
        self._replace(slot, timer)

    def _replace(self, slot: tuple[bool, str, int], timer: Timer | None) -> None:
        if timer is None:
            self._pending.pop(slot, None)
        else:
            self._pending[slot] = timer

    def undo(self, *before: Any) -> None:  # noqa: ANN401  a slot and its timer, or nothing
        """Restore the previous timer of a slot; without arguments, undo the count of a dropped timer."""
        if before:
            self._replace(*before)
        else:
            self.dropped -= 1


def _is_due(timer: Timer, until_ms: int, *, is_processing: bool) -> bool:
    """Return whether the watermark has passed an event-time timer, or processing time has reached the other.

    An event at the watermark is on time, so a timer at the watermark still waits for it.
    """
    if timer.is_processing != is_processing:
        return False
    return timer.at <= until_ms if is_processing else timer.at < until_ms


def _slot(timer: Timer) -> tuple[bool, str, int]:
    return (timer.is_processing, timer.name, 0 if timer.name else timer.at)


def milliseconds(when: object, call: str) -> int:
    """Return a user's datetime in epoch milliseconds, rounded up, or fail."""
    if not isinstance(when, datetime) or when.tzinfo is None:
        raise MisfitError(f"{call} takes a datetime with a time zone, such as ctx.event_time; got {when!r:.80}")
    return -((EPOCH - when) // _MS)


def moment(milliseconds: int) -> datetime:
    """Return epoch milliseconds as a datetime, clamped to the usable range."""
    return EPOCH + timedelta(milliseconds=min(max(milliseconds, FIRST_USABLE_MS), LAST_USABLE_MS))
