"""The settings of a simulation: the events, what goes wrong with them, and the pipeline that counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from slackwater.base.durations import render_ms
from slackwater.base.errors import fault

_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one simulation. The same settings give the same events, batches and results.

    `controls.py` describes each setting for users, and parses it from text.
    """

    rate: int = 20
    """Events per second, over all devices."""
    duration_ms: int = 5 * _MINUTE
    batch_every_ms: int = 3 * _SECOND
    keys: int = 50
    """The number of devices; results are counted per device."""
    partitions: int = 1
    delay: Literal["lognormal", "exponential"] = "lognormal"
    """The distribution of the time from an event to its arrival."""
    delay_p50_ms: int = 5 * _SECOND
    delay_p99_ms: int = 45 * _SECOND
    """Only for the lognormal distribution; an exponential one is determined by its median."""
    seed: int = 17

    offline_share: int = 0
    """In percent: the share of time that a device is offline, or the share of devices that go offline together."""
    offline_for_ms: int = 1 * _MINUTE
    offline: Literal["each", "together"] = "each"
    stall_ms: int | None = None
    """How long partition 0 is silent, starting after a third of the simulation."""
    bot_every_ms: int | None = None
    """The interval at which a bot sends events, without ever pausing."""
    ahead_by_ms: int | None = None
    """How far the clock of the first device is ahead, starting after a third of the simulation."""

    window: Literal["tumbling", "hopping", "session"] = "tumbling"
    window_size_ms: int = 30 * _SECOND
    """The size of a window; for sessions, the gap."""
    hop_ms: int = 15 * _SECOND
    max_length_ms: int | None = None
    out_of_orderness_ms: int = 10 * _SECOND
    allowed_lateness_ms: int = 0
    trigger: Literal["on_time", "early", "late_at_close", "final"] = "on_time"
    early_every_ms: int = 15 * _SECOND
    accumulation: Literal["accumulating", "discarding", "retracting"] = "accumulating"
    idle_after_ms: int | None = None
    max_ahead_ms: int | None = None

    @property
    def events(self) -> int:
        """The number of events."""
        bot = 0 if self.bot_every_ms is None else self.duration_ms // self.bot_every_ms
        return self.rate * self.duration_ms // _SECOND + bot

    @property
    def batches(self) -> int:
        """The number of batches."""
        return self.duration_ms // self.batch_every_ms


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The maximum size of a simulation."""

    events: int
    batches: int
    chunks: int
    """Batches times partitions, which determine the engine's work more than rows do."""
    windows_per_event: int = 60


OWN: Final = Limits(events=500_000, batches=5_000, chunks=20_000)
"""The limits of the command line, where users wait only for their own simulation."""
SERVED: Final = Limits(events=20_000, batches=300, chunks=1_500)
"""The limits of the page, where anyone who can reach it can request a simulation."""


def check_limits(settings: Settings, limits: Limits) -> None:
    """Reject a simulation that is too large, or whose settings contradict each other."""
    overlap = -(-settings.window_size_ms // settings.hop_ms) if settings.window == "hopping" else 1
    asked = {
        "events": (settings.events, limits.events, "lower `rate` or `duration`"),
        "batches": (settings.batches, limits.batches, "raise `batch_every`, or lower `duration`"),
        "batches times partitions": (
            settings.batches * settings.partitions,
            limits.chunks,
            "lower `partitions`, or raise `batch_every`",
        ),
        "windows for each event": (overlap, limits.windows_per_event, "raise `hop`, or lower `window_size`"),
    }
    for what, (got, most, remedy) in asked.items():
        if got > most:
            raise fault("SIMULATE_TOO_LARGE", what=what, most=f"{most:,}", got=f"{got:,}", remedy=remedy)
    if not settings.batches:
        length, every = render_ms(settings.duration_ms), render_ms(settings.batch_every_ms)
        raise fault("SIMULATE_TOO_SHORT", got=length, every=every)
    if settings.delay == "lognormal" and settings.delay_p99_ms < settings.delay_p50_ms:
        rule = f"a duration of at least `delay_p50`, {render_ms(settings.delay_p50_ms)}"
        given, example = render_ms(settings.delay_p99_ms), render_ms(2 * settings.delay_p50_ms)
        raise fault("SIMULATE_SETTING", name="delay_p99", rule=rule, got=given, example=example)
