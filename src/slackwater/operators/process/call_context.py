"""The context of one call of `on_event` or `on_timer`, and what it acts on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slackwater.base.errors import near_miss
from slackwater.base.times import MIN_MS
from slackwater.operators.process.base import Context
from slackwater.operators.process.emitting import NO_EVENT, Emitter
from slackwater.operators.process.failures import MisfitError
from slackwater.operators.process.state import Clock, Journal, Moment
from slackwater.operators.process.timers_of_a_key import Timer, Timers, milliseconds, moment


@dataclass(kw_only=True)
class Acting:
    """The timers and outputs of the current key, which every call of the key acts on."""

    timers: Timers
    emitters: Mapping[str, Emitter]
    journal: Journal
    moment: Moment
    """The time of the current call for state, in event time."""
    has_on_timer: bool
    values: tuple[Any, ...] = ()
    place: int = 0
    """The position of the key."""
    event: int = NO_EVENT
    """The position of the event among all of them."""
    watermark_ms: int = MIN_MS
    now_ms: int = MIN_MS
    is_ending: bool = False
    """Whether the last timers fire, so that none may be set."""


class CallContext(Context):
    """The context of one call; once the call has ended, its methods fail, because the key may be another."""

    __slots__ = ("_acting", "_event_ms", "is_over", "key", "timer")

    def __init__(self, acting: Acting, key: Any, timer: str, event_ms: int) -> None:  # noqa: ANN401  the user's own
        self._acting = acting
        self._event_ms = event_ms
        self.key = key
        self.timer = timer
        self.is_over = False

    @property
    def event_time(self) -> datetime:
        """The time of the event, or of the timer."""
        return moment(self._event_ms)

    @property
    def watermark(self) -> datetime | None:
        """The watermark in effect."""
        watermark_ms = self._acting.watermark_ms
        return None if watermark_ms <= MIN_MS else moment(watermark_ms)

    @property
    def processing_time(self) -> datetime:
        """The processing time of the batch."""
        return moment(self._acting.now_ms)

    def set_timer(self, when: datetime, *, clock: Clock = "event", name: str = "") -> None:
        """Set a timer of the current key."""
        acting = self._current("set_timer")
        if not acting.has_on_timer:
            raise MisfitError("set_timer needs a method on_timer in the class")
        at, is_processing = milliseconds(when, "set_timer"), _is_processing(clock)
        timer = Timer(at, _name(name), is_processing, acting.moment.ms)
        if acting.is_ending:
            acting.timers.drop(timer)
        else:
            acting.timers.set(timer)

    def delete_timer(self, when: datetime | None = None, *, clock: Clock = "event", name: str = "") -> None:
        """Remove a timer of the current key."""
        timers = self._current("delete_timer").timers
        at = 0 if name else milliseconds(when, "delete_timer")
        timers.delete(is_processing=_is_processing(clock), name=_name(name), at=at)

    def emit(self, output: str, row: Mapping[str, Any]) -> None:
        """Send a row to an output that the class declares."""
        acting = self._current("emit")
        emitter = acting.emitters.get(output)
        if emitter is None:
            hint = near_miss(str(output), acting.emitters)
            raise MisfitError(f"emit takes an output that the class declares; got {output!r}{hint}")
        acting.journal.append((emitter, len(emitter.rows)))
        emitter.add(emitter.checked(row, acting.values), acting.place, self._event_ms, acting.event)

    def _current(self, method: str) -> Acting:
        if self.is_over:
            given = f"the one of {moment(self._event_ms)} for key {self.key!r:.80}"
            raise MisfitError(f"ctx.{method} is for the call that got the context; got {given}; use the current `ctx`")
        return self._acting


def _is_processing(clock: object) -> bool:
    if clock not in ("event", "processing"):
        raise MisfitError(f'`clock` must be "event" or "processing"; got {clock!r:.80}')
    return clock == "processing"


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise MisfitError(f"a timer's name is a text; got {name!r:.80}")
    return name
