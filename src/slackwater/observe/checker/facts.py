"""What is known about a pipeline in addition to its definition: the machine, earlier runs, measured logs.

A rule that needs a fact finds nothing while the fact is unknown. To add a fact, add a field here and fill it in
`facts_of_run` or where the checker is called.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from slackwater.base.errors import SlackwaterError
from slackwater.engine.checkpoint.checkpoint import Checkpoint, read_manifest
from slackwater.observe.metrics.history import history_folder, read_history
from slackwater.observe.metrics.job_facts import read_facts
from slackwater.observe.metrics.monitor import LATENESS
from slackwater.observe.metrics.record import BatchRecord
from slackwater.observe.metrics.runs import last_run
from slackwater.plan.plan import Plan

_BATCHES: Final = 200
"""The number of recent batches with rows that are used."""
ENOUGH_ROWS: Final = 1_000
"""The minimum number of rows; fewer say little about one in a hundred."""
_ANSWER_S: Final = 2.0


class HotKey(NamedTuple):
    """The largest key of a step."""

    key: str
    share: float
    """The key's share of all rows of the step."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The known facts; a name that is missing from a mapping is unknown."""

    cores: int | None = None
    """The number of tasks that can run at once."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """By stream, the number of partitions of its source."""
    p99_ms: Mapping[str, int] = field(default_factory=dict)
    """By stream, the 99th percentile of its lateness."""
    retention_ms: Mapping[str, int] = field(default_factory=dict)
    """By stream, how long its log or topic keeps records."""
    hot_keys: Mapping[str, HotKey] = field(default_factory=dict)
    """By step, its largest key."""
    keys: Mapping[str, int] = field(default_factory=dict)
    """By step, the number of its keys."""
    starts: int | None = None
    """How often a driver has started on the checkpoint."""
    age_ms: int | None = None
    """The time between the first and the last batch on the checkpoint."""


def master_cores(master: str | None = None) -> int | None:
    """Return how many tasks a Spark master runs at once; None for a cluster, whose size is not known yet."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", master or "local[*]")
    if match is None:
        return None
    if match[1] is None:
        return 1
    return os.cpu_count() if match[1] == "*" else int(match[1])


def facts_of_run(plan: Plan, checkpoint: Path | None = None, *, facts: Facts | None = None) -> Facts:
    """Return `facts`, completed from the logs' folders and the last run on `checkpoint`; no source records are read."""
    known = facts or Facts()
    partitions = _folders(plan)
    starts, p99_ms, hot_keys = known.starts, known.p99_ms, known.hot_keys
    if checkpoint is not None and (checkpoint / "slackwater" / "manifest.json").is_file():
        partitions |= _clock_partitions(checkpoint)
        folder = history_folder(checkpoint)
        starts = last_run(folder).starts or starts
        history = read_history(folder)
        records = [record for record in history if record.rows][-_BATCHES:]
        p99_ms = {**_lateness(folder), **p99_ms}
        hot_keys = {**_hot_keys(records), **hot_keys}
        known = replace(known, keys={**_keys(records), **known.keys}, age_ms=_age_ms(history))
    partitions |= known.partitions
    return replace(known, partitions=partitions, starts=starts, p99_ms=p99_ms, hot_keys=hot_keys)


def facts_of_topics(plan: Plan, *, facts: Facts) -> Facts:
    """Return `facts`, completed with the retention of the sources that answer within two seconds."""
    kept_ms = dict(facts.retention_ms)
    for source in plan.sources:
        if source.name not in kept_ms:
            with suppress(Exception):  # the start of a job reports the error; here the fact stays unknown
                found = source.source.retention_ms(timeout_s=_ANSWER_S)
                kept_ms |= {} if found is None else {source.name: found}
    return replace(facts, retention_ms=kept_ms)


def _age_ms(history: Sequence[BatchRecord]) -> int | None:
    return history[-1].at_ms - history[0].at_ms if history else None


def _keys(records: Sequence[BatchRecord]) -> dict[str, int]:
    """Return the most keys that each step had in a batch, if all batches with rows know it and had enough rows."""
    numbers: dict[str, list[int | None]] = {}
    rows: Counter[str] = Counter()
    for record in records:
        for name, step in record.steps.items():
            if step.largest_share is not None:
                numbers.setdefault(name, []).append(step.keys)
                rows[name] += record.rows
    found = {name: [each for each in known if each is not None] for name, known in numbers.items()}
    return {
        name: max(known)
        for name, known in found.items()
        if rows[name] >= ENOUGH_ROWS and len(known) == len(numbers[name])
    }


def _lateness(folder: Path) -> dict[str, int]:
    """Return the p99 of each stream over all rows of the last run, as the page shows it."""
    measured = read_facts(folder / LATENESS)
    return {name: stream["p99_ms"] for name, stream in measured.items() if stream["rows"] >= ENOUGH_ROWS}


def _hot_keys(records: Sequence[BatchRecord]) -> dict[str, HotKey]:
    """Return the key with the largest mean share for each step, over all batches that know one."""
    shares: dict[str, Counter[str]] = {}
    batches: Counter[str] = Counter()
    for name, step in ((name, step) for record in records for name, step in record.steps.items()):
        if step.largest_share is not None:
            batches[name] += 1
            shares.setdefault(name, Counter())[step.largest_key] += step.largest_share  # type: ignore[assignment]  # a float
    found = {name: keys.most_common(1)[0] for name, keys in shares.items()}
    return {name: HotKey(key, share / batches[name]) for name, (key, share) in found.items()}


def _folders(plan: Plan) -> dict[str, int]:
    """Return the number of partitions of each log, which are its sub-folders."""
    found = {}
    for source in plan.sources:
        if (path := source.source.folder) is not None and (folder := Path(path)).is_dir():
            found[source.name] = sum(each.is_dir() and not each.name.startswith(".") for each in folder.iterdir())
    return found


def _clock_partitions(checkpoint: Path) -> dict[str, int]:
    """Return the number of partitions of each stream in the last batch; empty if the checkpoint is damaged."""
    try:
        manifest = read_manifest(checkpoint)
        clock = Checkpoint(
            path=checkpoint, incarnation=manifest["incarnation"], partitions=manifest["partitions"]
        ).next_clock()
    except (SlackwaterError, OSError, KeyError):
        return {}  # the start of a job reports the damage
    return {name: len(time.partitions) for name, time in clock.streams.items() if time.partitions}
