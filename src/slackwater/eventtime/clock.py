"""The clock of a micro-batch: the watermarks and the processing time that its decisions depend on.

The driver computes clock N at the end of batch N-1, writes it to `<checkpoint>/slackwater/clock/N`
before batch N-1 is committed, and passes it to the tasks of batch N. A replay of batch N sees the same clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Final

from slackwater.base.stored import shaped
from slackwater.base.times import MAX_MS, MIN_MS

_MOST_HANDED_OVER: Final = 64
_MOST_PASSED_MS: Final = 60_000
"""The most time between two batches that counts while processing time is ahead: more may be a step forward."""

Marks = dict[str, dict[str, int]]
"""The last batch that each slot of each sink has committed."""


@dataclass(frozen=True, kw_only=True)
class PartitionTime:
    """What the driver remembers about one source partition between batches."""

    max_ts_ms: int = MIN_MS
    active_at_ms: int = MIN_MS
    """When a batch last read a row with a usable time; if there was none, when the partition was first seen."""
    barren_since_ms: int | None = None
    """Since when batches have read only rows without a usable time; None if the last ones had one."""
    is_idle: bool = False
    is_finished: bool = False
    """Whether a bounded run has read the partition to its end."""

    @property
    def is_aside(self) -> bool:
        """Whether the partition does not hold back the watermark of its stream."""
        return self.is_idle or self.is_finished


@dataclass(frozen=True, kw_only=True)
class StreamTime:
    """The watermark of one source stream, before (`previous_ms`) and during the batch."""

    watermark_ms: int = MIN_MS
    previous_ms: int = MIN_MS
    partitions: dict[str, PartitionTime] = field(default_factory=dict)
    held_by: str = ""
    """The holder: the active partition with the smallest maximum event time, which determines the watermark."""
    held_since_ms: int = MIN_MS
    rows: int = 0
    """The number of rows read by earlier batches: the first place of the batch, if the source has no places."""
    since_ms: int = MIN_MS
    """The processing time of the first batch."""
    is_idle: bool = False
    is_finished: bool = False
    """Whether a bounded run has read the stream to its end."""

    @property
    def is_aside(self) -> bool:
        """Whether the stream does not hold back the steps that it shares with others."""
        return self.is_idle or self.is_finished


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The progress of a keyed step's state: the watermark it fired at, and what it has forgotten."""

    watermark_ms: int = MIN_MS
    forgotten_ms: int = MIN_MS
    """Windows that end at or before this time are forgotten, even if the allowed lateness is increased."""


@dataclass(frozen=True, kw_only=True)
class TableVersion:
    """The version of a table that a batch joins with."""

    version: str
    read_at_ms: int = MIN_MS
    """The processing time of the batch that the table was last read for."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The clock in effect during batch `batch`."""

    batch: int
    streams: dict[str, StreamTime]
    now_ms: int | None = None
    """The processing time of the batch; None until the batch begins."""
    logged_ms: int | None = None
    """The machine's time when the batch began, as Spark logged it; None until then."""
    last_now_ms: int = MIN_MS
    """The processing time of the batch before this one."""
    last_logged_ms: int = MIN_MS
    is_final: bool = False
    fingerprint: str = ""
    marks: Marks = field(default_factory=dict)
    """The batches that the sinks had committed before this one."""
    steps: dict[str, Reached] = field(default_factory=dict)
    """The progress of each keyed step before this batch."""
    tables: dict[str, TableVersion] = field(default_factory=dict)
    """The tables that the batch joins with, by step. They are read when the batch begins, before its first task."""
    incarnation: str = ""
    """The checkpoint's; empty without one."""
    token_before: str = ""
    """The token of the batch before: a hash of its entry in Spark's offset log."""

    @property
    def now(self) -> int:
        """The processing time of the batch, which must have begun."""
        assert self.now_ms is not None, f"batch {self.batch} has not begun"
        return self.now_ms

    def begun(self, logged_ms: int) -> Clock:
        """Return the clock of a batch that began at a time of the machine's clock, which may have been set back.

        Processing time never goes backwards and never stands still: while it is ahead of the machine's clock, it
        passes at half the speed, until the two agree again.
        """
        passed_ms = min(max(0, logged_ms - self.last_logged_ms), _MOST_PASSED_MS)
        return replace(self, logged_ms=logged_ms, now_ms=max(logged_ms, self.last_now_ms + passed_ms // 2))

    @property
    def is_over(self) -> bool:
        """Whether the final watermark is in effect; such a batch reads no records."""
        return all(time.watermark_ms >= MAX_MS for time in self.streams.values())

    def to_json(self) -> str:
        """Return the content of the clock file."""
        streams = {
            name: {
                **vars(time),
                "partitions": {part: vars(known) for part, known in sorted(time.partitions.items())},
            }
            for name, time in sorted(self.streams.items())
        }
        steps = {name: vars(step) for name, step in self.steps.items()}
        tables = {name: vars(table) for name, table in self.tables.items()}
        return json.dumps({**vars(self), "streams": streams, "steps": steps, "tables": tables}, sort_keys=True)

    def to_property(self) -> str:
        """Return the parts of the clock that tasks need.

        They include the largest time of each partition, to measure lateness, unless there are too many
        partitions to send to every task. All other details stay in the file.
        """
        streams = {
            name: [time.watermark_ms, time.previous_ms, _newest_ms(time), time.rows, time.is_aside]
            for name, time in self.streams.items()
        }
        steps = {name: [step.watermark_ms, step.forgotten_ms] for name, step in self.steps.items()}
        tables = {name: table.version for name, table in self.tables.items()}
        facts = {"batch": self.batch, "now_ms": self.now_ms, "incarnation": self.incarnation}
        return json.dumps({**facts, "streams": streams, "steps": steps, "tables": tables})

    @classmethod
    def from_json(cls, text: str) -> Clock:
        """Read the content of a clock file; raise an error if it is not valid."""
        clock: Clock = shaped(json.loads(text), cls)
        return clock

    @classmethod
    def from_property(cls, text: str) -> Clock:
        """Read the clock that was passed to a task."""
        known = json.loads(text)
        streams = {
            name: StreamTime(
                watermark_ms=watermark,
                previous_ms=previous,
                partitions={part: PartitionTime(max_ts_ms=newest) for part, newest in newest_ms.items()},
                rows=rows,
                is_idle=is_aside,
            )
            for name, (watermark, previous, newest_ms, rows, is_aside) in known["streams"].items()
        }
        steps = {
            name: Reached(watermark_ms=watermark, forgotten_ms=forgotten)
            for name, (watermark, forgotten) in known["steps"].items()
        }
        tables = {name: TableVersion(version=version) for name, version in known["tables"].items()}
        facts = {name: known[name] for name in ("batch", "now_ms", "incarnation")}
        return cls(streams=streams, steps=steps, tables=tables, **facts)


def _newest_ms(time: StreamTime) -> dict[str, int]:
    known = {name: part.max_ts_ms for name, part in time.partitions.items() if part.max_ts_ms > MIN_MS}
    return known if len(known) <= _MOST_HANDED_OVER else {}
