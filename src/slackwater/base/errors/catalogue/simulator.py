"""Errors of the simulator, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "SIMULATE_BUSY": (
        "the page runs one simulation at a time, with at most {most} waiting; the queue is full; try again in a moment"
    ),
    "SIMULATE_OUT": "`--out` is for the plot of a sweep; got no `--sweep`; try --sweep out_of_orderness=0s..60s",
    "SIMULATE_PRESET": "a simulation starts from a preset; got {got}{hint}; the presets are {known}",
    "SIMULATE_SETTING": "`{name}` must be {rule}; got {got}; try {example}",
    "SIMULATE_SETTING_UNKNOWN": "a simulation takes known settings only; got `{name}`{hint}; the settings are {known}",
    "SIMULATE_SWEEP": (
        "a sweep is NAME=FROM..TO, optionally with a step or a number of values after a comma; got {got}: {cause}; try "
        "out_of_orderness=0s..60s,10s"
    ),
    "SIMULATE_TOO_LARGE": "a simulation has at most {most} {what}; got {got}; {remedy}",
    "SIMULATE_TOO_SHORT": (
        "a simulation must last for at least one batch; got {got}, with a batch every {every}; raise `duration`"
    ),
}
