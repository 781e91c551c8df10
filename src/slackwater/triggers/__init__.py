"""Triggers: when a window fires."""

from slackwater.triggers.definitions import (
    AfterCount,
    AfterWatermark,
    AnyOf,
    Every,
    EveryEventTime,
    Never,
    Schedule,
    Trigger,
    after_count,
    after_watermark,
    any_of,
    every,
    every_event_time,
    never,
    schedule,
    written,
)

__all__ = [
    "AfterCount",
    "AfterWatermark",
    "AnyOf",
    "Every",
    "EveryEventTime",
    "Never",
    "Schedule",
    "Trigger",
    "after_count",
    "after_watermark",
    "any_of",
    "every",
    "every_event_time",
    "never",
    "schedule",
    "written",
]
