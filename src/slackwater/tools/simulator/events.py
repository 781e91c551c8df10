"""Generated events: when each happens, the time on its device's clock, and when it arrives in which partition."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

import polars as pl

from slackwater.tools.simulator.settings import Settings

START_MS: Final = 1_772_366_400_000
"""The start of every simulation: 2026-03-01 12:00 UTC."""
SCHEMA: Final = pl.Schema({"id": pl.Int64(), "device": pl.String(), "ts": pl.Int64()})
_P99: Final = NormalDist().inv_cdf(0.99)


def made_events(settings: Settings) -> pl.DataFrame:
    """Return all events in order of arrival: `SCHEMA`, `partition`, and `arrived` in epoch milliseconds."""
    dice = random.Random(settings.seed)
    delay, phones = _delay(settings, dice), _Offline(settings=settings)
    wrong_from = START_MS + settings.duration_ms // 3
    rows = []
    for number in range(settings.rate * settings.duration_ms // 1_000):
        happened = START_MS + int((number + dice.random()) * 1_000 / settings.rate)
        key = dice.randrange(settings.keys)
        ahead = settings.ahead_by_ms if settings.ahead_by_ms and key == 0 and happened >= wrong_from else 0
        arrived = phones.sent_at(key, happened) + delay()
        rows.append((f"device-{key}", happened + ahead, key % settings.partitions, arrived))
    for number in range(0 if settings.bot_every_ms is None else settings.duration_ms // settings.bot_every_ms):
        happened = START_MS + number * (settings.bot_every_ms or 0)
        rows.append(("bot", happened, 0, happened + delay()))
    made = [
        (number, device, ts, str(part), _unstalled(settings, part, arrived))
        for number, (device, ts, part, arrived) in enumerate(rows)
    ]
    schema = {**SCHEMA, "partition": pl.String(), "arrived": pl.Int64()}
    return pl.DataFrame(made, schema=schema, orient="row").sort("arrived", "id")


def _delay(settings: Settings, dice: random.Random) -> Callable[[], int]:
    """Return a function that draws the delay of the next event."""
    if settings.delay == "exponential":
        mean = settings.delay_p50_ms / math.log(2)
        return lambda: int(dice.expovariate(1 / mean))
    # A p99 below the median means no tail at all.
    sigma = max(0.0, math.log(settings.delay_p99_ms / settings.delay_p50_ms)) / _P99
    return lambda: int(dice.lognormvariate(math.log(settings.delay_p50_ms), sigma))


def _unstalled(settings: Settings, partition: int, arrived: int) -> int:
    begins = START_MS + settings.duration_ms // 3
    ends = begins + (settings.stall_ms or 0)
    return ends if partition == 0 and begins <= arrived < ends else arrived


@dataclass(kw_only=True)
class _Offline:
    """When devices are offline; each has its own random generator, so that another device does not change the rest."""

    settings: Settings
    _episodes: dict[int, list[int]] = field(default_factory=dict)
    """By device, the times at which it alternately goes offline and comes back."""

    def sent_at(self, key: int, happened: int) -> int:
        """Return when a device sends an event: immediately, or when it is back online."""
        if not self.settings.offline_share:
            return happened
        if key not in self._episodes:
            self._episodes[key] = self._together(key) if self.settings.offline == "together" else self._alone(key)
        turns = self._episodes[key]
        place = bisect_right(turns, happened)
        return turns[place] if place % 2 else happened

    def _together(self, key: int) -> list[int]:
        settings = self.settings
        # The first devices are on the train, at least one of them.
        if key >= max(1, settings.keys * settings.offline_share // 100):
            return []
        turns = []
        # A tunnel begins every two and a half times the time it takes to pass through one.
        for begins in range(settings.offline_for_ms, settings.duration_ms, 5 * settings.offline_for_ms // 2):
            turns += [START_MS + begins, START_MS + begins + settings.offline_for_ms]
        return turns

    def _alone(self, key: int) -> list[int]:
        settings = self.settings
        dice = random.Random(settings.seed * 1_000_003 + key)
        share = settings.offline_share / 100
        online = settings.offline_for_ms * (1 - share) / share
        # The device is somewhere in its online time when the stream begins.
        now, turns = START_MS + dice.expovariate(1 / online), list[int]()
        while now < START_MS + settings.duration_ms:
            back = now + settings.offline_for_ms * dice.uniform(0.5, 1.5)
            turns += [int(now), int(back)]
            now = back + dice.expovariate(1 / online)
        return turns
