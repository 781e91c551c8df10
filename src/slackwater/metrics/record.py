"""One batch as a plain record: what the history keeps, `--metrics-file` writes and Prometheus shows.

Times are epoch milliseconds, durations end in `_ms` or `_s`, sizes are bytes. In JSON, fields that have their default
value are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

from slackwater.ground.stored import DamageError
from slackwater.sinks.delivery_stats import SinkStats

QUANTILES: Final = (0.5, 0.95, 0.99)
"""Those that are recorded of latencies and lateness; by name "0.5", "0.95", "0.99"."""
Quantiles = dict[str, float]
"""Seconds by the name of the quantile."""


@dataclass(frozen=True, kw_only=True)
class PartitionRecord:
    """One source partition, after the batch."""

    rows: int = 0
    """Rows that the batch read of it."""
    max_ts_ms: int | None = None
    """The largest event time it has had; None if no row of it had one."""
    is_idle: bool = False
    """Whether it is set aside, so that it does not hold the watermark."""
    lag: int | None = None
    """Records of a Kafka partition that no batch has read; None for other sources."""
    lag_per_s: float | None = None
    """By how many records a second that grows; below zero while the job catches up."""


@dataclass(frozen=True, kw_only=True)
class StreamRecord:
    """One source stream in the batch."""

    rows: int = 0
    """Rows read."""
    filtered: int = 0
    """Rows that `where`, `map` or a join with a table left out."""
    added: int = 0
    """Rows that `map` made beside those it was given."""
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters by reason."""
    watermark_ms: int | None = None
    """The watermark that the next batch works by; None before there is one, and at the end of time."""
    held_by: str = ""
    """The partition that decides the watermark."""
    held_since_ms: int | None = None
    """The batch time at which it came to decide."""
    held_back_ms: int = 0
    """How much further the watermark would be if the next slowest partition decided."""
    waits_for: str = ""
    """The stream that this one waits for, unread in the next batch because it is too far ahead; "" if it does not."""
    waits_ms: int = 0
    """How far ahead of that stream it is."""
    out_of_orderness_ms: int | None = None
    """By how much the watermark trails the largest event time, as declared; None without an event time."""
    lateness_s: Quantiles = field(default_factory=dict)
    """How far rows were behind the newest one of their partition before them."""
    ages: tuple[tuple[int, int], ...] = ()
    """How old rows were when the batch began: at most 64 pairs (from so many milliseconds on, rows)."""
    ahead_of_clock: int = 0
    """Rows with an event time after the batch's own; those beyond `max_ahead` are dead letters instead."""
    partitions: dict[str, PartitionRecord] = field(default_factory=dict)
    """The partitions; of very many, those that are furthest behind."""

    @property
    def lag(self) -> int | None:
        """Records that wait in all partitions; None for a source that does not say."""
        known = [part.lag for part in self.partitions.values() if part.lag is not None]
        return sum(known) if known else None


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One keyed step in the batch."""

    counts: dict[str, int] = field(default_factory=dict)
    """Rows on_time, late, partly_late, refired, ignored and dead; panes, retractions; results that were filtered, added
    or became dead letters (dead_results); timers that failed (failed_timers), and others."""
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters of its rows and results, by reason."""
    state_bytes: int = 0
    """What it remembers."""
    state_rows: int = 0
    state_pieces: int = 0
    """The blobs that state is in."""
    open_rows: int = 0
    """State rows that the watermark has not passed yet: of open windows, and of what waits for its time."""
    state_keys: int | None = None
    """About how many keys it remembers, see `state/counted_keys`; None until a key group has counted."""
    largest_key: str = ""
    """The key with the most rows of the batch, of a step that takes whole rows."""
    largest_share: float | None = None
    """Its share of them, from 0 to 1."""
    keys: int | None = None
    """How many keys the batch had, of a step that takes whole rows; None if they are more than a few."""
    ports: dict[str, int] = field(default_factory=dict)
    """Of a join, the rows that it holds of each side."""


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """One output in the batch."""

    rows: int = 0
    event_s: Quantiles = field(default_factory=dict)
    """From the event time of its rows to their delivery; a window's result has the window's end."""
    ingestion_s: Quantiles = field(default_factory=dict)
    """From when the log received its rows to their delivery; of rows that went through no keyed step."""


@dataclass(frozen=True, kw_only=True)
class LookupRecord:
    """One lookup step in the batch."""

    requests: int = 0
    hits: int = 0
    """Keys that the cache answered."""
    misses: int = 0
    """Keys that the store was asked for."""
    missing: int = 0
    """Keys, among those, that the store has nothing for."""
    errors: int = 0
    """Requests that failed."""
    request_s: Quantiles = field(default_factory=dict)
    """How long requests took."""


@dataclass(frozen=True, kw_only=True)
class BatchRecord:
    """One batch after it was delivered; or several that were put together, once they are old."""

    batch: int
    """Its number; of several, the last one's."""
    batches: int = 1
    """How many batches this is."""
    run: int = 1
    """Which start of the checkpoint it belongs to, from 1."""
    at_ms: int
    """When it was delivered and its clock written."""
    now_ms: int
    """Its processing time, which Spark has logged."""
    seconds: float = 0.0
    """How long it took, Spark's planning excluded."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """What that is made of: "front", "keyed" (with the shuffle between them), "sinks", "clock"."""
    spark_s: dict[str, float] = field(default_factory=dict)
    """What Spark says of the batch before: "queryPlanning", "latestOffset", "addBatch", "walCommit" and others."""
    streams: dict[str, StreamRecord] = field(default_factory=dict)
    steps: dict[str, StepRecord] = field(default_factory=dict)
    outputs: dict[str, OutputRecord] = field(default_factory=dict)
    sinks: dict[str, SinkStats] = field(default_factory=dict)
    lookups: dict[str, LookupRecord] = field(default_factory=dict)

    @property
    def first_batch(self) -> int:
        """The number of its first batch."""
        return self.batch - self.batches + 1

    @property
    def rows(self) -> int:
        """Rows read from all sources."""
        return sum(stream.rows for stream in self.streams.values())

    @property
    def rows_out(self) -> int:
        """Rows of all outputs."""
        return sum(output.rows for output in self.outputs.values())

    @property
    def dead(self) -> Counter[tuple[str, str]]:
        """Dead letters by stream or step, and reason."""
        places: list[tuple[str, dict[str, int]]] = [(name, each.dead) for name, each in self.streams.items()]
        places += [(name, each.dead) for name, each in self.steps.items()]
        return Counter({(name, reason): count for name, dead in places for reason, count in dead.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain values."""
        plain: dict[str, Any] = _lean(self)
        return plain

    def to_line(self) -> str:
        """Return the record as one line of JSON, without its end."""
        return json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, facts: Any) -> BatchRecord:  # noqa: ANN401  what JSON gave
        """Read what `to_json` gave; raises a `ValueError` for anything else."""
        try:
            record = cls(
                **{
                    **facts,
                    "streams": {name: _stream(found) for name, found in facts.get("streams", {}).items()},
                    **{
                        part: {name: kind(**found) for name, found in facts.get(part, {}).items()}
                        for part, kind in _KINDS.items()
                    },
                }
            )
            if not all(isinstance(known, int) for known in (record.batch, record.batches, record.run, record.at_ms)):
                raise DamageError("it has no batch")
        except (TypeError, AttributeError) as error:
            raise DamageError("it is not the record of a batch") from error
        return record


_KINDS: Final[dict[str, Any]] = {
    "steps": StepRecord,
    "outputs": OutputRecord,
    "sinks": SinkStats,
    "lookups": LookupRecord,
}


def _stream(facts: dict[str, Any]) -> StreamRecord:
    ages = tuple((lower_ms, count) for lower_ms, count in facts.get("ages", ()))
    partitions = {name: PartitionRecord(**found) for name, found in facts.get("partitions", {}).items()}
    return StreamRecord(**{**facts, "ages": ages, "partitions": partitions})


def _lean(value: Any) -> Any:  # noqa: ANN401  a record, or part of one
    """Return dataclasses as dictionaries without the fields that have their default value."""
    kind = type(value)
    if kind is float:
        return round(value, 4)
    if kind is dict:
        return {name: _lean(each) for name, each in value.items()}
    if kind not in _DEFAULTS:
        return value
    found = vars(value)
    return {name: _lean(found[name]) for name, default in _DEFAULTS[kind] if found[name] != default}


_DEFAULTS: Final[dict[Any, list[tuple[str, Any]]]] = {
    kind: [
        (each.name, each.default if each.default_factory is MISSING else each.default_factory())
        for each in fields(kind)
    ]
    for kind in (BatchRecord, StreamRecord, PartitionRecord, *_KINDS.values())
}
"""The fields of each kind of record, with their defaults."""
