"""Merging the records of several batches into one.

Counts and durations are added; state and watermarks are those of the last batch; quantiles are the largest.
Histograms and partitions are dropped: they are kept for the newest batches only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from slackwater.connectors.delivery_stats import SinkStats
from slackwater.observe.metrics.record import (
    BatchRecord,
    LookupRecord,
    OutputRecord,
    Quantiles,
    StepRecord,
    StreamRecord,
)

_Part = TypeVar("_Part")


def merged(records: Sequence[BatchRecord]) -> BatchRecord:
    """Return one record for `records`, which are consecutive batches of one run."""
    return replace(
        records[-1],
        **_sums(records, "batches", "seconds"),
        phases_s=_added(record.phases_s for record in records),
        spark_s=_added(record.spark_s for record in records),
        streams=_each([record.streams for record in records], _stream),
        steps=_each([record.steps for record in records], _step),
        outputs=_each([record.outputs for record in records], _output),
        sinks=_each([record.sinks for record in records], _sink),
        lookups=_each([record.lookups for record in records], _lookup),
    )


def _each(parts: Sequence[Mapping[str, _Part]], merge: Callable[[list[_Part]], _Part]) -> dict[str, _Part]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: merge([part[name] for part in parts if name in part]) for name in names}


def _sums(parts: Sequence[object], *names: str) -> dict[str, Any]:
    return {name: sum(getattr(part, name) for part in parts) for name in names}


def _stream(parts: list[StreamRecord]) -> StreamRecord:
    return replace(
        parts[-1],
        **_sums(parts, "rows", "filtered", "added", "ahead_of_clock"),
        dead=_counted(part.dead for part in parts),
        lateness_s=_largest(part.lateness_s for part in parts),
        ages=(),
        oldest_ms=None,
        partitions={},
    )


def _step(parts: list[StepRecord]) -> StepRecord:
    worst = max(parts, key=lambda part: part.largest_share or 0.0)
    return replace(
        parts[-1],
        counts=_counted(part.counts for part in parts),
        dead=_counted(part.dead for part in parts),
        largest_key=worst.largest_key,
        largest_share=worst.largest_share,
        keys=_most([part.keys for part in parts]),
    )


def _most(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return max(known) if known and len(known) == len(numbers) else None


def _output(parts: list[OutputRecord]) -> OutputRecord:
    return OutputRecord(
        rows=sum(part.rows for part in parts),
        event_s=_largest(part.event_s for part in parts),
        ingestion_s=_largest(part.ingestion_s for part in parts),
    )


def _sink(parts: list[SinkStats]) -> SinkStats:
    return replace(parts[-1], **_sums(parts, "rows", "seconds", "waited_s", "retries"))


def _lookup(parts: list[LookupRecord]) -> LookupRecord:
    return LookupRecord(
        **_sums(parts, "requests", "hits", "misses", "missing", "errors"),
        request_s=_largest(part.request_s for part in parts),
    )


def _counted(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return dict(total)


def _added(times: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in times:
        for name, seconds in each.items():
            total[name] = total.get(name, 0.0) + seconds
    return total


def _largest(quantiles: Iterable[Quantiles]) -> Quantiles:
    found: Quantiles = {}
    for each in quantiles:
        for q, seconds in each.items():
            found[q] = max(seconds, found.get(q, seconds))
    return found
