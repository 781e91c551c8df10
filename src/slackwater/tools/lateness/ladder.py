"""Round durations: what a person would choose as an out-of-orderness, or as a label on an axis."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from slackwater.base.durations import render_ms

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_OF_SIXTY: Final = (1, 2, 3, 5, 10, 15, 20, 30, 45)

ROUND_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(count * _SECOND for count in _OF_SIXTY),
    *(count * _MINUTE for count in _OF_SIXTY),
    *(count * _HOUR for count in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(count * _DAY for count in (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 180)),
    *(count * 365 * _DAY for count in (1, 2, 5, 10, 20, 50, 100)),
)
"""In ascending order; the last is the longest duration that a pipeline accepts."""

COARSE_MS: Final = (
    *(1, 10, 100),
    *(_SECOND, 10 * _SECOND),
    *(_MINUTE, 10 * _MINUTE),
    *(_HOUR, 6 * _HOUR),
    *(_DAY, 7 * _DAY, 30 * _DAY, 365 * _DAY, 3_650 * _DAY, 36_500 * _DAY),
)
"""A selection of them, about a factor of ten apart."""

_STEPS: Final = ((_DAY, _HOUR), (_HOUR, _MINUTE), (_MINUTE, _SECOND), (10 * _SECOND, 100), (_SECOND, 10))


def round_up_ms(milliseconds: int) -> int:
    """Return the next round duration that is not shorter; 0 stays 0, and the longest is the limit."""
    if milliseconds <= 0:
        return 0
    return ROUND_MS[min(bisect_left(ROUND_MS, milliseconds), len(ROUND_MS) - 1)]


def round_down_ms(milliseconds: int) -> int:
    """Return the last round duration that is not longer, at least 1 ms."""
    at = bisect_left(ROUND_MS, milliseconds + 1)
    return ROUND_MS[max(at - 1, 0)]


def shortened(milliseconds: int) -> str:
    """Return `shorten_ms` as text."""
    return render_ms(shorten_ms(milliseconds))


def shorten_ms(milliseconds: int) -> int:
    """Return a duration that is not shorter and has about three digits: nobody needs the seconds of 612 days."""
    for least, step in _STEPS:
        if milliseconds >= least:
            return -(-milliseconds // step) * step
    return milliseconds


def rungs(least_ms: int, most_ms: int, *, at_most: int) -> list[int]:
    """Return round durations from `least_ms` to the first that reaches `most_ms`, evenly thinned to `at_most`."""
    within = [step for step in ROUND_MS if least_ms <= step < most_ms]
    within.append(round_up_ms(most_ms))
    if len(within) > at_most:
        last = len(within) - 1
        within = [within[round(place * last / (at_most - 1))] for place in range(at_most)]
    return within
