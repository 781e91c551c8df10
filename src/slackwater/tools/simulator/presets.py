"""The presets: stories that each show one aspect of event time, and the setting that changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slackwater.base.errors import fault, near_miss
from slackwater.tools.simulator.controls import read
from slackwater.tools.simulator.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A story: its settings, what to look at, and what to try."""

    name: str
    about: str
    """What the story is about, in one sentence."""
    look: str
    """What to look at, in one sentence."""
    then: str
    """What to try and what that changes, in one sentence."""
    settings: Settings
    remedy: Mapping[str, str]
    """The settings to try, as text."""

    @property
    def remedied(self) -> Settings:
        """The settings with the remedy applied."""
        return read(self.remedy, self.settings)


_ALL: Final = (
    Preset(
        name="phones",
        about="Phones on a mobile network: half of the events arrive within 5 seconds, one in a hundred takes over 45.",
        look=(
            "The blue cloud is the events, as far below the dashed line (now) as they took to arrive; the black line "
            "is the watermark, which trails the newest event, and orange dots arrived after it had passed them."
        ),
        then=(
            "Raise out-of-orderness until hardly any orange dots are left, and see what that costs: every result is "
            "delayed by the same amount."
        ),
        settings=Settings(),
        remedy={"out_of_orderness": "30s"},
    ),
    Preset(
        name="tunnel",
        about="A train takes three phones in ten through a tunnel; what they record there arrives afterwards.",
        look=(
            "Twice, the cloud thins out for a minute, and then everything from the tunnel arrives at once, in "
            "orange: the watermark did not wait, the windows were closed, and these events are late."
        ),
        then=(
            "With an allowed lateness of two minutes, results arrive just as soon, and are corrected once the train "
            "is back."
        ),
        settings=Settings(keys=60, offline_share=30, offline="together", delay_p50_ms=3_000, delay_p99_ms=15_000),
        remedy={"allowed_lateness": "2m"},
    ),
    Preset(
        name="bot",
        about="Sessions of people, who pause, and of a bot, which never does.",
        look=(
            "The bot's session cannot end, because its events never pause for 20 seconds: the oldest open window is as "
            "old as the stream, and the bot has no result at all."
        ),
        then=("With a maximum length of one minute, its session is cut, and it gets results like everyone else."),
        settings=Settings(
            rate=4,
            keys=200,
            window="session",
            window_size_ms=20_000,
            bot_every_ms=2_000,
            delay_p50_ms=3_000,
            delay_p99_ms=15_000,
        ),
        remedy={"max_length": "1m"},
    ),
    Preset(
        name="stalled",
        about="One of two partitions stalls for a minute and a half, then sends everything at once.",
        look=(
            "While partition 0 is silent, the watermark stalls, because the slowest partition determines it: nothing "
            "is late, and there are no results; hover over the picture to see a line for each partition."
        ),
        then=(
            "With idle_after, the watermark moves on after 20 seconds, and the events that were stuck correct the "
            "results that were emitted without them."
        ),
        settings=Settings(
            partitions=2, stall_ms=90_000, allowed_lateness_ms=120_000, delay_p50_ms=3_000, delay_p99_ms=15_000
        ),
        remedy={"idle_after": "20s"},
    ),
    Preset(
        name="clock-ahead",
        about="The clock of one device in fifty starts to run a minute and a half fast.",
        look=(
            "When that clock goes wrong, it takes the watermark with it, above the dashed line: windows "
            "close before their events happen, and every correct event is late."
        ),
        then=("With max_ahead, events too far ahead of the clock are dead letters, and everyone else's are on time."),
        settings=Settings(ahead_by_ms=90_000, delay_p50_ms=3_000, delay_p99_ms=15_000),
        remedy={"max_ahead": "20s"},
    ),
)
PRESETS: Final[dict[str, Preset]] = {preset.name: preset for preset in _ALL}
DEFAULT: Final = "phones"


def preset_named(name: str) -> Preset:
    """Return a preset by name; reject an unknown name."""
    if name not in PRESETS:
        short = name[:40]
        raise fault("SIMULATE_PRESET", got=repr(short), hint=near_miss(short, PRESETS), known=", ".join(PRESETS))
    return PRESETS[name]
