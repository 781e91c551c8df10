"""Starting offsets given by the user: checked when a source is defined, and again against the cluster.

Spark's connector needs an offset for every partition of every topic, and retries forever without one; so omitted
partitions are filled in with the earliest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from slackwater.base.errors import fault, listed, near_miss, refuse
from slackwater.connectors.kafka.client import Cluster, Place, partition_name

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""

_EARLIEST: Final = -2
"""The connector's code for the earliest offset."""
_LIKE: Final = '{"orders": {0: 120, 1: 95}}'


def check_offsets(given: object, topics: Collection[str], pattern: str | None) -> dict[str, dict[int, int]]:
    """Return the offsets in `start`; rejects anything else, and topics that the source does not read."""
    if not isinstance(given, Mapping) or not given:
        raise refuse("KAFKA_OFFSETS", got=repr(given), like=_LIKE)
    for topic, parts in given.items():
        if not isinstance(topic, str) or not isinstance(parts, Mapping):
            raise refuse("KAFKA_OFFSETS", got=f"{topic!r}: {parts!r}", like=_LIKE)
        for number in (number for pair in parts.items() for number in pair):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise refuse("KAFKA_OFFSETS", got=f"{topic!r}: {dict(parts)!r}", like=_LIKE)
        if topic not in topics and not (pattern is not None and re.fullmatch(pattern, topic)):
            raise refuse("KAFKA_OFFSETS_TOPIC", got=topic, near=near_miss(topic, topics))
    return {topic: dict(parts) for topic, parts in given.items()}


def check_offsets_exist(cluster: Cluster, given: Offsets, *, stream: str) -> None:
    """Raise if a partition does not exist, or does not have the given offset."""
    asked = {(topic, number): offset for topic, parts in given.items() for number, offset in parts.items()}
    absent = sorted(set(asked) - set(cluster.partitions(given)))
    if absent:
        names = ", ".join(map(partition_name, absent))
        raise fault("KAFKA_OFFSETS_PARTITION", servers=cluster.connection, partitions=names, stream=stream)
    begins, ends = cluster.begins(asked), cluster.ends(asked)
    facts = [
        f"{offset:,} of {partition_name(place)}, which has {_held(begins[place], ends[place])}"
        for place, offset in sorted(asked.items())
        if not begins[place] <= offset <= ends[place]
    ]
    if facts:
        raise fault("KAFKA_OFFSETS_RANGE", stream=stream, facts=listed(facts))


def connector_offsets(given: Offsets, places: Iterable[Place]) -> str:
    """Return offsets for all of `places` in the connector's format: those given, otherwise the earliest."""
    every: dict[str, dict[str, int]] = {}
    for topic, number in places:
        every.setdefault(topic, {})[str(number)] = given.get(topic, {}).get(number, _EARLIEST)
    return json.dumps(every)


def _held(begin: int, end: int) -> str:
    return f"{begin:,} to {end - 1:,} (the next is {end:,})" if end > begin else f"no record (the next is {end:,})"
