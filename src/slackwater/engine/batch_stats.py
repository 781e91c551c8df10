"""The statistics of one batch, summed over its tasks: all that the driver knows about the rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from slackwater.base.times import MIN_MS
from slackwater.engine.enrichment.stats import LookupStats
from slackwater.engine.losses import Losses
from slackwater.engine.ranges import Ranges
from slackwater.engine.skew import Skew
from slackwater.eventtime.ages import AgeSketch
from slackwater.eventtime.measured_lateness import LatenessSketch

Facts = dict[str, Any]
"""The JSON content of a statistics packet."""


@dataclass(kw_only=True)
class PartitionStats:
    """What a batch read from one source partition."""

    rows: int = 0
    max_ts_ms: int = MIN_MS


@dataclass(kw_only=True)
class StreamStats:
    """What a batch read from one source stream."""

    rows: int = 0
    filtered: int = 0
    added: int = 0
    dead: int = 0
    partitions: dict[str, PartitionStats] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    """Dead letters by reason, and by message where that distinguishes causes."""
    ages: AgeSketch | None = None
    """The ages of the rows with a usable time; None if their time is the processing time of the batch."""
    ahead: int = 0
    """The number of rows with a time after the processing time of the batch."""


@dataclass(kw_only=True)
class BatchStats:
    """The statistics of one batch."""

    now_ms: int = MIN_MS
    streams: dict[str, StreamStats] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """Per step or output: rows on time, refired, late, panes, …"""
    state: dict[str, Counter[str]] = field(default_factory=dict)
    """Per step: pieces, rows and bytes in state, and how many of the rows are open: not yet passed by the watermark."""
    keys: dict[str, dict[int, int]] = field(default_factory=dict)
    """Per step, the number of keys in each key group that counted them in this batch, by the group's place."""
    skew: dict[str, Skew] = field(default_factory=dict)
    """Per step that does not combine rows, how its rows are distributed over its keys."""
    lateness: dict[str, dict[str, LatenessSketch]] = field(default_factory=dict)
    """Per stream and partition, the lateness of the batch's rows."""
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    """Per keyed step, dead letters of its rows and results by reason."""
    losses: dict[str, Losses] = field(default_factory=dict)
    """Per stream, and per output of a step, its rows and how many of them became dead letters anywhere."""
    ages: dict[str, dict[str, AgeSketch]] = field(default_factory=dict)
    """Per output, the ages of its rows when the batch began: since their "event" time and since their "ingestion"."""
    lookups: dict[str, LookupStats] = field(default_factory=dict)
    """Per lookup step; a replayed batch finds its answers persisted and sends no requests."""
    front_ended_ms: int = MIN_MS
    """When the last FRONT task ended, by the clock of its machine."""
    samples: list[Facts] = field(default_factory=list)
    """Some of the late rows and dead letters: reason, position, and the content if the plan shows data."""

    skipped: dict[str, Ranges] = field(default_factory=dict)
    """Per range of rows to skip, the offsets in it that the batch had."""

    @classmethod
    def merged(cls, payloads: Iterable[bytes]) -> BatchStats:
        """Sum the statistics sent by the tasks of a batch."""
        total = cls()
        for payload in payloads:
            total._add(json.loads(payload))
        for losses in total.losses.values():
            losses.settle()
        return total

    def move_lateness(self, total: dict[str, dict[str, LatenessSketch]]) -> None:
        """Move the lateness sketches of the batch into `total`: kept in every report, they would fill the memory."""
        for stream, sketches in self.lateness.items():
            known = total.setdefault(stream, {})
            for name, sketch in sketches.items():
                known.setdefault(name, LatenessSketch.empty()).merge(sketch)
        self.lateness.clear()

    def drop_details(self) -> None:
        """Drop the ages and samples, for the same reason."""
        self.ages.clear()
        self.samples = []
        for stream in self.streams.values():
            stream.ages = None

    def _add(self, facts: Facts) -> None:
        self.now_ms = max(self.now_ms, facts["now_ms"])
        for name, counts in facts["counts"].items():
            self.counts.setdefault(name, Counter()).update(counts)
        for name, held in facts.get("state", {}).items():
            self.state.setdefault(name, Counter()).update(held)
        for name, (place, keys) in facts.get("keys", {}).items():
            self.keys.setdefault(name, {})[place] = keys
        for name, asked in facts.get("lookups", {}).items():
            self.lookups.setdefault(name, LookupStats()).add(LookupStats.from_facts(asked))
        for name, counted in facts["skew"].items():
            self.skew.setdefault(name, Skew()).add(Skew(**counted))
        self._add_ages(facts.get("ages", {}))
        for name, lost in facts.get("losses", {}).items():
            self.losses.setdefault(name, Losses()).add(Losses.from_json(lost))
        self.samples += facts.get("samples", ())
        if "stream" in facts:
            self._add_stream(facts)
        else:
            for name, reasons in facts.get("reasons", {}).items():
                self.reasons.setdefault(name, Counter()).update(reasons)

    def _add_ages(self, facts: Facts) -> None:
        for name, ages in facts.items():
            known = self.ages.setdefault(name, {})
            for since, text in ages.items():
                known[since] = _with_ages(known.get(since), text)

    def _add_stream(self, facts: Facts) -> None:
        """Add the statistics of a stream from a FRONT task."""
        stream = self.streams.setdefault(facts["stream"], StreamStats())
        stream.rows += facts["rows"]
        stream.filtered += facts["filtered"]
        stream.added += facts["added"]
        stream.dead += facts["dead"]
        stream.ahead += facts.get("ahead", 0)
        self.front_ended_ms = max(self.front_ended_ms, facts.get("ended_ms", MIN_MS))
        if facts.get("age") is not None:
            stream.ages = _with_ages(stream.ages, facts["age"])
        for name, seen in facts["partitions"].items():
            known = stream.partitions.setdefault(name, PartitionStats())
            known.rows += seen["rows"]
            known.max_ts_ms = max(known.max_ts_ms, seen["max_ts_ms"])
        for reason, counts in facts["reasons"].items():
            stream.reasons.setdefault(reason, Counter()).update(counts)
        for rows, pairs in facts.get("skipped", {}).items():
            self.skipped.setdefault(rows, Ranges()).add([(first, last) for first, last in pairs])
        for name, text in facts["lateness"].items():
            sketches = self.lateness.setdefault(facts["stream"], {})
            sketches.setdefault(name, LatenessSketch.empty()).merge_json(text)


def _with_ages(known: AgeSketch | None, text: str) -> AgeSketch:
    sketch = known or AgeSketch()
    sketch.merge_json(text)
    return sketch
