"""A simulation in the form that the browser draws: records like those of a job, the figures, and the controls."""

from __future__ import annotations

from typing import Any, Final

from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.view import shown_record
from slackwater.tools.simulator.account import ACCOUNTS, SimulationAccount
from slackwater.tools.simulator.controls import CONTROLS
from slackwater.tools.simulator.presets import DEFAULT, PRESETS, Preset
from slackwater.tools.simulator.running import Simulation
from slackwater.tools.simulator.settings import Settings

Shown = dict[str, Any]
"""An object that is sent to the browser as JSON."""
_ACCOUNTS: Final = {
    "on_time": ("on time", "Counted in a window before its result was emitted."),
    "corrected": ("corrected", "Arrived after the result of a window that was still kept, and corrected it."),
    "ignored": ("ignored", "Arrived after the result of a window that its trigger had finished."),
    "no_window": ("in no window", "Fell into the gap between two windows: the hop is longer than the window."),
    "late": ("late", "Arrived after all their windows were forgotten: they go to the late output, unchanged."),
    "dead": ("dead letters", "Could not be used; here, because they are too far ahead of the clock."),
    "on_the_way": ("on the way", "Had happened but not yet arrived when the simulation ended."),
}


def feed_of(simulation: Simulation) -> JobFeed:
    """Return a simulation as a feed, like that of a job."""
    return JobFeed(simulation.job, map(shown_record, simulation.records), simulation.lateness)


def shown_simulation(simulation: Simulation) -> Shown:
    """Return everything that the browser draws for a simulation."""
    feed = feed_of(simulation)
    return {
        "job": {**feed.job, "svg": None},
        "records": feed.records,
        "lateness": feed.lateness,
        "account": _account(simulation.account),
    }


def shown_controls() -> Shown:
    """Return the controls and presets for the browser."""
    controls = [
        {
            **_facts(each, "name", "help", "group", "kind", "steps", "unit", "only"),
            "label": each.label or each.name.replace("_", " "),
        }
        for each in CONTROLS.values()
    ]
    return {"controls": controls, "presets": [_preset(preset) for preset in PRESETS.values()], "default": DEFAULT}


def shown_settings(settings: Settings) -> dict[str, str]:
    """Return every setting as text."""
    return {name: control.shown(settings) for name, control in CONTROLS.items()}


def _facts(of: object, *names: str) -> Shown:
    return {name: getattr(of, name) for name in names}


def _preset(preset: Preset) -> Shown:
    return {
        **_facts(preset, "name", "about", "look", "then"),
        "remedy": dict(preset.remedy),
        "settings": shown_settings(preset.settings),
    }


def _account(account: SimulationAccount) -> Shown:
    parts = [
        {"name": name, "label": _ACCOUNTS[name][0], "help": _ACCOUNTS[name][1], "rows": getattr(account, name)}
        for name in ACCOUNTS
    ]
    return {
        **_facts(account, "events", "delay_ms", "windows", "panes_per_window", "oldest_open_ms"),
        **_facts(account, "state_bytes", "state_rows"),
        "parts": parts,
    }
