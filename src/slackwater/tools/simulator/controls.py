"""All settings of a simulation, described for users. The command line, addresses and the page use `read`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from slackwater.base.durations import duration_ms
from slackwater.base.errors import fault, near_miss
from slackwater.tools.simulator.control import NONE, Control, Group
from slackwater.tools.simulator.settings import Settings

_LONGEST_NAME: Final = 40
_SECOND_MS: Final = 1_000
_HOUR_MS: Final = 3_600_000


def _duration(name: str, help: str, steps: str, **more: Any) -> Control:  # noqa: A002, ANN401  its fields
    places = tuple(steps.split())
    ends = [duration_ms(text, what=name, least_ms=0) for text in places if text != NONE]
    bounds = {"least": min(ends[0], _SECOND_MS), "most": _HOUR_MS, "is_optional": places[0] == NONE} | more
    return Control(name=name, help=help, kind="duration", steps=places, **bounds)


def _number(name: str, help: str, steps: str, **more: Any) -> Control:  # noqa: A002, ANN401  as above
    places = tuple(steps.split())
    bounds = {"least": int(places[0]), "most": int(places[-1])} | more
    return Control(name=name, help=help, kind="whole", steps=places, **bounds)


def _choice(name: str, help: str, steps: str, **more: Any) -> Control:  # noqa: A002, ANN401  as above
    return Control(name=name, help=help, kind="choice", steps=tuple(steps.split()), **more)


_LENGTHS: Final = "0s 1s 2s 5s 10s 15s 20s 30s 45s 1m 1m30s 2m 3m 4m 5m 10m"
_PIPELINE: Final = (
    _duration(
        "out_of_orderness",
        "The slack: how far the watermark trails the newest event. More slack means fewer late events and later "
        "results.",
        _LENGTHS,
        label="out-of-orderness",
    ),
    _duration(
        "allowed_lateness",
        "How long a window is kept after its result, so that an event that arrives later corrects it.",
        _LENGTHS,
    ),
    _choice(
        "window",
        "Tumbling windows follow each other, hopping windows overlap, and a session lasts while events keep arriving.",
        "tumbling hopping session",
    ),
    _duration(
        "window_size",
        "How long a window is; for sessions, the gap without events that ends one.",
        "10s 15s 20s 30s 1m 2m 5m",
    ),
    _duration("hop", "How often a hopping window starts.", "5s 10s 15s 20s 30s 1m", only=("window", ("hopping",))),
    _duration(
        "max_length",
        "The maximum length of a session: after that it is cut, and the next one begins.",
        "none 1m 2m 3m 5m",
        only=("window", ("session",)),
    ),
    _choice(
        "trigger",
        "When a window emits results: once it is complete (on_time), also before that (early), with corrections only "
        "as it closes (late_at_close), or without corrections (final).",
        "on_time early late_at_close final",
    ),
    _duration(
        "early_every",
        "How often an open window emits its result so far.",
        "5s 10s 15s 30s",
        only=("trigger", ("early",)),
        label="early results every",
    ),
    _choice(
        "accumulation",
        "What each further result of a window contains: everything so far (accumulating), only what is new "
        "(discarding), or everything, after retracting the previous result (retracting).",
        "accumulating discarding retracting",
    ),
    _duration(
        "idle_after",
        "After this long without an event, a partition no longer holds back the watermark.",
        "none 10s 20s 30s 1m 2m",
    ),
    _duration(
        "max_ahead",
        "An event further ahead of the clock than this is a dead letter, and does not move the watermark.",
        "none 0s 5s 10s 30s 1m 5m",
    ),
)
_EVENTS: Final = (
    _number(
        "rate",
        "How many events happen per second, across all devices.",
        "1 2 4 10 20 40",
        most=1_000,
        label="events per second",
    ),
    _duration("duration", "How long the simulated stream runs.", "1m 2m 5m 10m 15m", most=86_400_000),
    _duration(
        "batch_every",
        "How often the engine reads what has arrived; the watermark moves between batches.",
        "2s 3s 5s 10s 20s",
        least=100,
        most=600_000,
        label="a batch every",
    ),
    _number(
        "keys",
        "How many devices send events; each device has its own results.",
        "1 10 50 100 500 1000",
        most=10_000,
        label="devices",
    ),
    _number(
        "partitions", "How many partitions the log has; the slowest one determines the watermark.", "1 2 3 4 8", most=64
    ),
    _choice(
        "delay",
        "The distribution of delays between event and arrival; lognormal has a longer tail.",
        "lognormal exponential",
    ),
    _duration(
        "delay_p50",
        "Half of the events take less than this to arrive.",
        "50ms 100ms 200ms 500ms 1s 2s 5s 10s 20s",
        least=1,
        label="median delay",
    ),
    _duration(
        "delay_p99",
        "One event in a hundred takes longer than this to arrive.",
        "500ms 1s 2s 5s 10s 20s 30s 45s 1m 2m 5m",
        least=1,
        only=("delay", ("lognormal",)),
        label="p99 delay",
    ),
    _number(
        "seed",
        "A different seed gives different events of the same kind.",
        "1 2 3 5 7 11 13 17 19 23",
        least=0,
        most=999_999_999,
    ),
)
_TROUBLE: Final = (
    _number(
        "offline_share",
        "Percentage of time that a device is offline; if they go offline together, percentage of devices that do.",
        "0 1 2 5 10 20 30 50",
        most=90,
        unit="%",
        label="offline",
    ),
    _duration(
        "offline_for",
        "How long a device is offline; what it recorded meanwhile arrives once it is back.",
        "20s 30s 1m 1m30s 2m 3m",
    ),
    _choice(
        "offline",
        "Each device on its own, or together, as in a train that enters a tunnel.",
        "each together",
        label="they go offline",
    ),
    _duration(
        "stall",
        "A third of the way in, nothing from partition 0 arrives for this long; then everything arrives at once.",
        "none 30s 1m 1m30s 2m 3m",
        label="partition stalls",
    ),
    _duration(
        "bot_every",
        "One more device sends an event this often and never pauses.",
        "none 1s 2s 5s 10s",
        most=600_000,
        label="bot sends every",
    ),
    _duration(
        "ahead_by",
        "From a third of the way in, the clock of the first device runs ahead by this much.",
        "none 10s 30s 1m 1m30s 2m 3m",
        most=86_400_000,
        label="clock ahead by",
    ),
)
_GROUPS: Final[dict[Group, tuple[Control, ...]]] = {"pipeline": _PIPELINE, "events": _EVENTS, "trouble": _TROUBLE}
CONTROLS: Final = {each.name: replace(each, group=group) for group, part in _GROUPS.items() for each in part}


def read(texts: Mapping[str, str], base: Settings) -> Settings:
    """Return `base` with the settings in `texts`; reject unknown names and invalid values."""
    changes = {}
    for name, text in texts.items():
        if name not in CONTROLS:
            short = name[:_LONGEST_NAME]
            raise fault(
                "SIMULATE_SETTING_UNKNOWN", name=short, hint=near_miss(short, CONTROLS), known=", ".join(CONTROLS)
            )
        changes[CONTROLS[name].field] = CONTROLS[name].value(text)
    return replace(base, **changes)  # type: ignore[arg-type]  # each control returns the type of its setting


def written(settings: Settings, base: Settings) -> dict[str, str]:
    """Return the settings that differ from `base`, as text."""
    return {
        name: control.shown(settings)
        for name, control in CONTROLS.items()
        if getattr(settings, control.field) != getattr(base, control.field)
    }
