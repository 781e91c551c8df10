"""What one batch did, summed over its tasks: the driver's only knowledge of the rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from slackwater.clock.ages import AgeSketch
from slackwater.clock.lateness import LatenessSketch
from slackwater.ground.times import MIN_MS
from slackwater.lookups.stats import LookupStats
from slackwater.state.skew import Skew

Facts = dict[str, Any]
"""JSON as packets carry it."""


@dataclass(kw_only=True)
class PartitionStats:
    """What a batch read of one source partition."""

    rows: int = 0
    max_ts_ms: int = MIN_MS


@dataclass(kw_only=True)
class StreamStats:
    """What a batch read of one source stream."""

    rows: int = 0
    filtered: int = 0
    added: int = 0
    dead: int = 0
    partitions: dict[str, PartitionStats] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    """Dead letters by reason, and by message where it tells one cause from another."""
    examples: dict[str, str] = field(default_factory=dict)
    """The message of one dead letter of each reason."""
    ages: AgeSketch | None = None
    """How old the rows that got a time were; None where that is the batch's own."""
    ahead: int = 0
    """Rows that got a time after the batch's own."""


@dataclass(kw_only=True)
class BatchStats:
    """The statistics of one batch."""

    now_ms: int = MIN_MS
    streams: dict[str, StreamStats] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """Per step or output: rows on time, refired, late, panes, …"""
    state: dict[str, Counter[str]] = field(default_factory=dict)
    """Per step: pieces, rows and bytes held, and how many of the rows are open: not passed by the watermark yet."""
    keys: dict[str, dict[int, int]] = field(default_factory=dict)
    """Per step, how many keys the key groups hold that counted in this batch, by their place."""
    skew: dict[str, Skew] = field(default_factory=dict)
    """Per step that takes whole rows, how they are spread over its keys."""
    lateness: dict[str, dict[str, LatenessSketch]] = field(default_factory=dict)
    """Per stream and partition, how late the rows of the batch were."""
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    """Per keyed step, dead letters of its rows and results by reason."""
    ages: dict[str, dict[str, AgeSketch]] = field(default_factory=dict)
    """Per output, how old its rows were when the batch began: since their "event" time and since their "ingestion"."""
    lookups: dict[str, LookupStats] = field(default_factory=dict)
    """Per lookup step; a batch that is run again finds its answers written down, and asks for nothing."""
    front_ended_ms: int = MIN_MS
    """When the last task of FRONT was done, by the clock of its machine."""
    samples: list[Facts] = field(default_factory=list)
    """Some of the late rows and dead letters: why and where, and what was in them if the plan shows data."""

    @classmethod
    def merged(cls, payloads: Iterable[bytes]) -> BatchStats:
        """Sum the statistics that the batch's tasks sent."""
        total = cls()
        for payload in payloads:
            total._add(json.loads(payload))
        return total

    def move_lateness(self, total: dict[str, dict[str, LatenessSketch]]) -> None:
        """Move the batch's sketches into `total`: kept in every report they would fill the memory."""
        for stream, sketches in self.lateness.items():
            known = total.setdefault(stream, {})
            for name, sketch in sketches.items():
                known.setdefault(name, LatenessSketch.empty()).merge(sketch)
        self.lateness.clear()

    def drop_details(self) -> None:
        """Forget the ages and samples, for the same reason."""
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
        for name, ages in facts.get("ages", {}).items():
            for since, text in ages.items():
                known = self.ages.setdefault(name, {})
                known[since] = _with_ages(known.get(since), text)
        self.samples += facts.get("samples", ())
        if "stream" in facts:
            self._add_stream(facts)
        else:
            for name, reasons in facts.get("reasons", {}).items():
                self.reasons.setdefault(name, Counter()).update(reasons)

    def _add_stream(self, facts: Facts) -> None:
        """Add what FRONT counted of a stream."""
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
        for reason, message in facts["examples"].items():
            # Tasks report in any order, and a batch that is run again must say the same.
            stream.examples[reason] = min(message, stream.examples.get(reason, message))
        for name, text in facts["lateness"].items():
            sketches = self.lateness.setdefault(facts["stream"], {})
            sketches.setdefault(name, LatenessSketch.empty()).merge_json(text)


def _with_ages(known: AgeSketch | None, text: str) -> AgeSketch:
    sketch = known or AgeSketch()
    sketch.merge_json(text)
    return sketch
