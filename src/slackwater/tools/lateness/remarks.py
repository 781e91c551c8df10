"""Remarks that a reader of the report needs in addition to the numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from slackwater.base.durations import render_ms
from slackwater.base.errors import counted, listed
from slackwater.base.times import render_time
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.tools.lateness.ladder import round_up_ms, shortened

_TIMES_WORSE: Final = 5
_LEAST_MS: Final = 1_000
"""A partition that is worse by less than a second is not worth a remark."""
_LEAST_EVENTS: Final = 100
_LEAST_BEYOND: Final = 10
_SHOWN: Final = 3
_HOUR_MS: Final = 3_600_000
_HALF: Final = 0.5
_EARLY_1973_MS: Final = 100_000_000_000
"""Current times in seconds, if read as milliseconds, are all before this."""


def far_worse(sketches: Mapping[str, LatenessSketch], target: float) -> list[str]:
    """Return the partitions whose events are far later than the others', the worst first.

    Far later means: covering the target's share takes at least five times the median of the others.
    """
    covering = {name: sketch.covering(target) for name, sketch in sketches.items()}
    found = []
    for name, milliseconds in covering.items():
        others = [value for other, value in covering.items() if other != name]
        if not others or milliseconds < _LEAST_MS or sketches[name].count < _LEAST_EVENTS:
            continue
        if milliseconds >= _TIMES_WORSE * statistics.median(others):
            found.append(name)
    return sorted(found, key=lambda name: -covering[name])


def clock_ahead(events: int, furthest_ms: int, partitions: Sequence[str]) -> str:
    """Return the remark on events that were far ahead of the time they were received."""
    places = listed((name or "(the folder itself)" for name in partitions), most=_SHOWN)
    number = f"{counted(events, 'event')}, in partition{'s' * (len(partitions) != 1)} {places},"
    return (
        f"A clock runs ahead: {number} {'was' if events == 1 else 'were'} up to {shortened(furthest_ms)} "
        "ahead of the arrival time, and left out here. In a job, the watermark would jump there and every correct "
        'event would be late: set max_ahead, such as max_ahead="1m", to make them dead letters.'
    )


def remarks(
    sketches: Mapping[str, LatenessSketch],
    whole: LatenessSketch,
    *,
    target: float,
    recommended_ms: int,
    worse: Sequence[str],
    last_ms: int,
    overtaken: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the remarks on one stream, as whole sentences."""
    if overtaken:
        one = len(overtaken) == 1
        files = "1 file is out of order: all its" if one else f"{len(overtaken):,} files are out of order: all their"
        yield (
            f"{files} events are older than those of a file in the same partition that was modified earlier, for "
            f"example {overtaken[0]}. A job reads files by modification time, then by name: give them times, or names, "
            "in the order of their events, and measure again."
        )
    for name in worse[:_SHOWN]:
        others = LatenessSketch.merged(sketch for other, sketch in sketches.items() if other != name)
        its, theirs = (shortened(sketch.covering(target)) for sketch in (sketches[name], others))
        without = render_ms(round_up_ms(others.covering(target)))
        yield (
            f"Partition {name or '(the folder itself)'} is far later than the others: {100 * target:.12g} % of its "
            f"events are within {its}, {100 * target:.12g} % of all others within {theirs}. Without it, {without} "
            "would be enough."
        )
    if len(worse) > _SHOWN:
        yield f"So are {len(worse) - _SHOWN} more partitions."
    if target < 1 and whole.count * (1 - target) < _LEAST_BEYOND:
        yield (
            f"{counted(whole.count, 'event')} {'is' if whole.count == 1 else 'are'} few for a target of "
            f"{100 * target:.12g} %: the recommendation depends on the {max(1, round(whole.count * (1 - target)))} "
            "latest of them."
        )
    if whole.max_ms >= _HOUR_MS and whole.share_later_than(whole.max_ms // 2) > _HALF:
        yield (
            f"Most events are far behind the newest, which is from {render_time(last_ms)[:19]}: a clock that runs "
            "ahead causes this. Exclude its events with max_ahead, and measure again."
        )
    if whole.covering(target) > recommended_ms:
        yield f"The target is out of reach: no out-of-orderness may be longer than {render_ms(recommended_ms)}."
    if 0 <= last_ms < _EARLY_1973_MS:
        yield "All event times are close to 1970: are they in seconds? Whole numbers are read as milliseconds."
