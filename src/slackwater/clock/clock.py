"""The clock of a micro-batch: every watermark and the processing time that its decisions depend on.

Clock N is decided by the driver at the end of batch N-1, written to `<checkpoint>/slackwater/clock/N`
before batch N-1 is committed, and handed to the tasks of batch N. Batch N run again sees the same clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from slackwater.ground.stored import shaped
from slackwater.ground.times import MAX_MS, MIN_MS

_MOST_HANDED_OVER: Final = 64

Marks = dict[str, dict[str, int]]
"""The last batch that each slot of each sink has."""


@dataclass(frozen=True, kw_only=True)
class PartitionTime:
    """What the driver remembers of one source partition between batches."""

    max_ts_ms: int = MIN_MS
    active_at_ms: int = MIN_MS
    """When a batch last brought a row with a usable time; of a partition that had none, when it was first seen."""
    barren_since_ms: int | None = None
    """Since when batches have read rows and none of them had a usable time."""
    is_idle: bool = False


@dataclass(frozen=True, kw_only=True)
class StreamTime:
    """The watermark of one source stream, before (`previous_ms`) and during the batch."""

    watermark_ms: int = MIN_MS
    previous_ms: int = MIN_MS
    partitions: dict[str, PartitionTime] = field(default_factory=dict)
    held_by: str = ""
    """The live partition whose events are the oldest: it decides."""
    held_since_ms: int = MIN_MS
    rows: int = 0
    """Rows that the batches before have read: where the places of rows begin that their source gives none."""


@dataclass(frozen=True, kw_only=True)
class Reached:
    """How far a keyed step's state has come: what it was fired by, and what it has forgotten."""

    watermark_ms: int = MIN_MS
    forgotten_ms: int = MIN_MS
    """Windows that end here or before are forgotten for good, whatever lateness is allowed from now on."""


@dataclass(frozen=True, kw_only=True)
class TableVersion:
    """The version of a table that a batch joins with."""

    version: str
    read_at_ms: int = MIN_MS
    """The processing time of the batch that the table was last read for."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The clock in force during batch `batch`."""

    batch: int
    streams: dict[str, StreamTime]
    now_ms: int | None = None
    """The processing time of the batch; None until the batch begins."""
    is_final: bool = False
    fingerprint: str = ""
    marks: Marks = field(default_factory=dict)
    """What the sinks have from the batches before this one."""
    steps: dict[str, Reached] = field(default_factory=dict)
    """How far each keyed step came in the batches before this one."""
    tables: dict[str, TableVersion] = field(default_factory=dict)
    """The tables that the batch joins with, by step. They are read as the batch begins, before its first task."""

    @property
    def now(self) -> int:
        """The processing time of the batch, which has begun."""
        assert self.now_ms is not None, f"batch {self.batch} has not begun"
        return self.now_ms

    @property
    def is_over(self) -> bool:
        """Whether this is the end of time: a batch under the final watermark reads no records."""
        return all(time.watermark_ms >= MAX_MS for time in self.streams.values())

    def to_json(self) -> str:
        """Return the clock file's text."""
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
        """Return what the tasks need of the clock.

        Of partitions that is their largest times, to measure lateness by, unless they are too many to
        travel with every task; all other detail stays in the file.
        """
        streams = {
            name: [time.watermark_ms, time.previous_ms, _newest_ms(time), time.rows]
            for name, time in self.streams.items()
        }
        steps = {name: [step.watermark_ms, step.forgotten_ms] for name, step in self.steps.items()}
        tables = {name: table.version for name, table in self.tables.items()}
        known = {"batch": self.batch, "streams": streams, "steps": steps, "tables": tables, "now_ms": self.now_ms}
        return json.dumps(known)

    @classmethod
    def from_json(cls, text: str) -> Clock:
        """Read a clock file's text; raises if it cannot be one."""
        clock: Clock = shaped(json.loads(text), cls)
        return clock

    @classmethod
    def from_property(cls, text: str) -> Clock:
        """Read the clock that was handed to a task."""
        known = json.loads(text)
        streams = {
            name: StreamTime(
                watermark_ms=watermark,
                previous_ms=previous,
                partitions={part: PartitionTime(max_ts_ms=newest) for part, newest in newest_ms.items()},
                rows=rows,
            )
            for name, (watermark, previous, newest_ms, rows) in known["streams"].items()
        }
        steps = {
            name: Reached(watermark_ms=watermark, forgotten_ms=forgotten)
            for name, (watermark, forgotten) in known["steps"].items()
        }
        tables = {name: TableVersion(version=version) for name, version in known["tables"].items()}
        return cls(batch=known["batch"], streams=streams, steps=steps, tables=tables, now_ms=known["now_ms"])


def _newest_ms(time: StreamTime) -> dict[str, int]:
    known = {name: part.max_ts_ms for name, part in time.partitions.items() if part.max_ts_ms > MIN_MS}
    return known if len(known) <= _MOST_HANDED_OVER else {}
