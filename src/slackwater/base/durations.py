"""Durations: `timedelta` or a string such as "1h30m" in the API, integer milliseconds internally."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from slackwater.base.errors import refuse

_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_WHOLE: Final = re.compile(r"\s*(-?)((?:\d+(?:ms|s|m|h|d|w)\s*)+)")
_CALENDAR: Final = re.compile(r"\d\s*(mo|M|y|q)")
_MONTHS: Final = 'for windows of months and years use sw.calendar("month", zone=…), else a number of days'
_TRY: Final = 'try "30s" or "1h30m"'
_LONGEST_MS: Final = 100 * 365 * 86_400_000
_LONGEST: Final = timedelta(milliseconds=_LONGEST_MS)
_ROUGHLY: Final = (
    (30 * _UNIT_MS["d"], "d"),
    (_UNIT_MS["d"], "h"),
    (_UNIT_MS["h"], "m"),
    (10 * _UNIT_MS["s"], "s"),
)
"""From which duration on nobody needs more than the given unit."""

Duration = str | timedelta


@dataclass(frozen=True)
class Forever:
    """A duration without end: what is kept for `FOREVER` is never forgotten."""

    def __repr__(self) -> str:
        return "FOREVER"


FOREVER: Final = Forever()
"""In place of a duration that says how long something is kept: never forget it."""


def duration_ms(value: Duration, *, what: str, least_ms: int | None = 1) -> int:
    """Return `value` in milliseconds; `what` names it in the error if it is invalid.

    `least_ms` is the smallest allowed value: 1, the default, means longer than zero; 0 allows zero; None allows
    negative durations, which only window offsets use.
    """
    total = _parse(value, what=what)
    if abs(total) > _LONGEST_MS:
        raise refuse("DURATION_TOO_LONG", what=what, got=value)
    if least_ms is not None and total < least_ms:
        rule = "longer than zero" if least_ms > 0 else "zero or longer"
        raise refuse("DURATION_TOO_SHORT", what=what, rule=rule, got=value)
    return total


def duration(value: Duration) -> timedelta:
    """Return `value` as a `timedelta`: `duration("1h30m")`."""
    return timedelta(milliseconds=duration_ms(value, what="duration", least_ms=None))


def render_ms(milliseconds: int) -> str:
    """Return a duration as users write it: 90_000 gives "1m30s"."""
    if milliseconds == 0:
        return "0s"
    rest, out = abs(milliseconds), "-" if milliseconds < 0 else ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNIT_MS[unit])
        if count:
            out += f"{count}{unit}"
    return out


def roughly(milliseconds: int) -> str:
    """Return a measured duration for people, in at most its two largest units: 7_799_392 gives "2h9m".

    Settings are shown exactly, by `render_ms`.
    """
    if milliseconds < 0:
        return f"-{roughly(-milliseconds)}"
    for least_ms, unit in _ROUGHLY:
        if milliseconds >= least_ms:
            return render_ms(milliseconds // _UNIT_MS[unit] * _UNIT_MS[unit])
    return render_ms(milliseconds)


def _parse(value: Duration, *, what: str) -> int:
    if isinstance(value, timedelta):
        if abs(value) <= _LONGEST and value % timedelta(milliseconds=1):
            raise refuse("DURATION_TOO_FINE", what=what, got=value)
        return value // timedelta(milliseconds=1)
    match = _WHOLE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        is_calendar = isinstance(value, str) and _CALENDAR.search(value) is not None
        raise refuse("DURATION_UNREADABLE", what=what, got=repr(value), advice=_MONTHS if is_calendar else _TRY)
    total = sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(match[2]))
    return -total if match[1] else total
