"""What a log holds that no batch has read yet, and files that Spark will never read."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.eventtime.clock import MIN_MS, Clock
from slackwater.plan import Plan
from slackwater.sources.log import LogSource
from slackwater.sources.log_reader import list_log


def backlog(plan: Plan, clock: Clock, taken: Mapping[str, Mapping[str, int]]) -> dict[str, frozenset[str]]:
    """Return, per log stream, the partitions with unread files.

    `taken` are the newest modification times that this very batch took, per stream and partition. A
    partition not read yet holds the watermark: files arrive by modification time, so that a backlog
    is read one partition after the other.
    """
    waiting = {}
    for source in plan.sources:
        if not isinstance(source.source, LogSource):
            continue
        newest: dict[str, int] = {}
        for file in list_log(source.source.path):
            newest[file.partition] = max(newest.get(file.partition, MIN_MS), file.modified_ms)
        known = clock.streams[source.name].partitions
        read = taken.get(source.name, {})
        waiting[source.name] = frozenset(
            name
            for name, modified in newest.items()
            if modified > max(read.get(name, MIN_MS), known[name].modified_ms if name in known else MIN_MS)
        )
    return waiting
