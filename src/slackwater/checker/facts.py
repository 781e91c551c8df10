"""What is known of a pipeline besides its definition: the machine, earlier runs, measured logs.

A rule that needs a fact finds nothing while the fact is unknown. To teach the checker a new one, add a field here, and
fill it in `facts_of_run` or where the checker is called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from slackwater.checkpoint.checkpoint import Checkpoint, read_manifest
from slackwater.checkpoint.lock import lock_folder
from slackwater.errors import SlackwaterError
from slackwater.planning.plan import Plan
from slackwater.sources.log.definition import LogSource


class HotKey(NamedTuple):
    """The largest key of a step."""

    key: str
    share: float
    """Of all rows that the step took."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known; a name that is missing from a mapping is unknown."""

    cores: int | None = None
    """How many tasks can run at a time."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """By stream, how many partitions its source has."""
    p99_ms: Mapping[str, int] = field(default_factory=dict)
    """By stream, what 99 % of its events are at most late by."""
    retention_ms: Mapping[str, int] = field(default_factory=dict)
    """By stream, how long its log or topic keeps records."""
    hot_keys: Mapping[str, HotKey] = field(default_factory=dict)
    """By step, its largest key."""
    keys: Mapping[str, int] = field(default_factory=dict)
    """By step, how many keys it has."""
    starts: int | None = None
    """How often a driver has started on the checkpoint."""


def master_cores(master: str | None = None) -> int | None:
    """Return how many tasks a Spark master runs at a time; None for a cluster, which the driver does not know yet."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", master or "local[*]")
    if match is None:
        return None
    if match[1] is None:
        return 1
    return os.cpu_count() if match[1] == "*" else int(match[1])


def facts_of_run(plan: Plan, checkpoint: Path | None = None, *, facts: Facts | None = None) -> Facts:
    """Return `facts` and what the logs' folders and the last run on `checkpoint` tell; no record is read."""
    known = facts or Facts()
    partitions = {**_folders(plan), **known.partitions}
    starts = known.starts
    if checkpoint is not None and (checkpoint / "slackwater" / "manifest.json").is_file():
        partitions = {**partitions, **_clock_partitions(checkpoint)}
        starts = max(
            (int(path.name) for path in lock_folder(checkpoint).glob("[0-9]*") if path.name.isdigit()), default=starts
        )
    return replace(known, partitions=partitions, starts=starts)


def _folders(plan: Plan) -> dict[str, int]:
    """Return how many partitions each log has: its sub-folders."""
    found = {}
    for source in plan.sources:
        if isinstance(source.source, LogSource) and (folder := Path(source.source.path)).is_dir():
            found[source.name] = sum(each.is_dir() and not each.name.startswith(".") for each in folder.iterdir())
    return found


def _clock_partitions(checkpoint: Path) -> dict[str, int]:
    """Return how many partitions each stream had in the last batch; nothing from a checkpoint that is damaged."""
    try:
        manifest = read_manifest(checkpoint)
        clock = Checkpoint(
            path=checkpoint, incarnation=manifest["incarnation"], partitions=manifest["partitions"]
        ).next_clock()
    except (SlackwaterError, OSError, KeyError):
        return {}  # a start says what is wrong with it
    return {name: len(time.partitions) for name, time in clock.streams.items() if time.partitions}
