"""What a log holds that no batch has read yet, and files that none will ever read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from slackwater.errors import SlackwaterWarning, render
from slackwater.eventtime.clock import MIN_MS, Clock
from slackwater.plan import Plan
from slackwater.runtime.kafka_watch import Lag
from slackwater.sources.log import LogSource
from slackwater.sources.log_reader import list_log, strays

_SETTLED_MS: Final = 10_000
"""Spark found nothing new in a batch: a file so much older than the batch, and unread, stays unread."""
_SHOWN: Final = 5


class StrayFilesWarning(SlackwaterWarning):
    """A log holds files that will never be read."""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """What no batch has read, per stream."""

    backlog: dict[str, frozenset[str]] = field(default_factory=dict)
    """Partitions with records that a batch to come will read."""
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    """Partitions that exist, whether or not anything was ever in them."""
    lag: dict[str, dict[str, Lag]] = field(default_factory=dict)
    """How many records of a Kafka partition no batch has read."""
    strays: dict[str, list[str]] = field(default_factory=dict)
    """Files that no batch will ever read."""
    missing: dict[str, frozenset[str]] = field(default_factory=dict)
    """Partitions that were read and that the source no longer has."""


def unread(plan: Plan, clock: Clock, taken: Mapping[str, Mapping[str, int]], now_ms: int) -> Unread:
    """Compare every log's folder with what was taken from it.

    `taken` are the newest modification times that this very batch took, per stream and partition. A
    partition not read yet holds the watermark: files arrive by modification time, so that a backlog
    is read one partition after the other. Files whose names begin with `_`, and files that were
    overwritten after they were read, are passed over by Spark without a word.
    """
    found = Unread()
    for source in plan.sources:
        if not isinstance(source.source, LogSource):
            continue
        known = clock.streams[source.name].partitions
        read = taken.get(source.name, {})
        waiting, lost = set(), strays(source.source.path)
        for file in list_log(source.source.path):
            before = known[file.partition].modified_ms if file.partition in known else MIN_MS
            if file.modified_ms <= max(before, read.get(file.partition, MIN_MS)):
                continue
            if not read and before > MIN_MS and file.modified_ms < now_ms - _SETTLED_MS:
                lost.append(file.path)
            else:
                waiting.add(file.partition)
        found.backlog[source.name] = frozenset(waiting)
        found.strays[source.name] = lost
    return found


def report_strays(plan: Plan, found: Unread, reported: set[str]) -> None:
    """Warn, once per file, of what will never be read; `reported` remembers."""
    paths = {source.name: source.source.path for source in plan.sources if isinstance(source.source, LogSource)}
    for stream, lost in found.strays.items():
        if fresh := [path for path in lost if path not in reported]:
            reported.update(fresh)
            shown = ", ".join(fresh[:_SHOWN]) + (", …" if len(fresh) > _SHOWN else "")
            words = render("LOG_STRAYS", path=paths[stream], count=len(fresh), files=shown)
            warnings.warn(f"[LOG_STRAYS] {words}", StrayFilesWarning, stacklevel=2)
