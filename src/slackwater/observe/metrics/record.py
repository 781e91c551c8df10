"""The record of one batch, as kept by the history, written by `--metrics-file` and exposed to Prometheus.

Times are epoch milliseconds, durations end in `_ms` or `_s`, sizes are bytes. In JSON, fields that have their default
value are left out, and `form` is the version of the fields.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

from slackwater.base.stored import AnotherVersionError, DamageError
from slackwater.connectors.delivery_stats import SinkStats

QUANTILES: Final = (0.5, 0.95, 0.99)
"""The recorded quantiles of latencies and lateness; their names are "0.5", "0.95", "0.99"."""
FORM: Final = 1
"""The version of a record's JSON: what its fields are called, and what they mean."""
Quantiles = dict[str, float]
"""Seconds by the name of the quantile."""


@dataclass(frozen=True, kw_only=True)
class PartitionRecord:
    """One source partition, after the batch."""

    rows: int = 0
    """Rows that the batch read from the partition."""
    max_ts_ms: int | None = None
    """The largest event time so far; None if no row had one."""
    is_idle: bool = False
    """Whether the partition is idle, so that it does not hold back the watermark."""
    is_finished: bool = False
    """Whether a bounded run has read the partition to its end, so that it does not hold back the watermark either."""
    lag: int | None = None
    """Records of a Kafka partition that no batch has read; None for other sources."""
    lag_per_s: float | None = None
    """The growth of the lag in records per second; negative while the job catches up."""


@dataclass(frozen=True, kw_only=True)
class StreamRecord:
    """One source stream in the batch."""

    rows: int = 0
    """Rows read."""
    filtered: int = 0
    """Rows that `where`, `map` or a join with a table removed."""
    added: int = 0
    """Rows that `map` returned in excess of those it was given."""
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters by reason."""
    watermark_ms: int | None = None
    """The watermark of the next batch; None before there is one, and at the end of time."""
    held_by: str = ""
    """The partition that determines the watermark."""
    held_since_ms: int | None = None
    """The batch time since which this partition has determined it."""
    held_back_ms: int = 0
    """How much further the watermark would be if the next slowest partition determined it."""
    aside: str = ""
    """Why no step that reads several streams waits for this one: "idle", or "finished" in a bounded run. Else ""."""
    waits_for: str = ""
    """The stream that this one waits for: too far ahead, it is not read in the next batch. "" if it does not wait."""
    waits_ms: int = 0
    """How far ahead of that stream it is."""
    out_of_orderness_ms: int | None = None
    """The declared out-of-orderness; None without an event time."""
    lateness_s: Quantiles = field(default_factory=dict)
    """How far rows were behind the newest earlier row of their partition."""
    ages: tuple[tuple[int, int], ...] = ()
    """A histogram of the rows' ages when the batch began: at most 64 pairs (lower bound in milliseconds, rows)."""
    oldest_ms: int | None = None
    """The smallest event time of the rows; None if no row had one."""
    ahead_of_clock: int = 0
    """Rows with an event time after the batch's processing time; those beyond `max_ahead` are dead letters instead."""
    partitions: dict[str, PartitionRecord] = field(default_factory=dict)
    """The partitions; if there are very many, those that are furthest behind."""

    @property
    def lag(self) -> int | None:
        """Unread records of all partitions; None for a source without lag."""
        known = [part.lag for part in self.partitions.values() if part.lag is not None]
        return sum(known) if known else None


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One keyed step in the batch."""

    counts: dict[str, int] = field(default_factory=dict)
    """Rows that were on_time, late, partly_late, refired, ignored and dead; panes, retractions; results that were
    filtered, added or became dead letters (dead_results); timers that failed (failed_timers),
    stored rows that failed (failed_in_state), and others."""
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters of the step's rows and results, by reason."""
    state_bytes: int = 0
    """The size of the step's state."""
    state_rows: int = 0
    state_pieces: int = 0
    """The number of blobs of state."""
    open_rows: int = 0
    """State rows that the watermark has not passed yet: those of open windows, and rows that wait for their time."""
    state_keys: int | None = None
    """The approximate number of keys in state, see `state/counted_keys`; None until a key group has counted."""
    largest_key: str = ""
    """The key with the most rows in the batch, for a step that takes whole rows."""
    largest_share: float | None = None
    """The largest key's share of the rows, from 0 to 1."""
    keys: int | None = None
    """The number of keys in the batch, for a step that takes whole rows; None if there are more than a few."""
    ports: dict[str, int] = field(default_factory=dict)
    """For a join, the rows in state per side."""


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """One output in the batch."""

    rows: int = 0
    event_s: Quantiles = field(default_factory=dict)
    """Latency from event time to delivery; a window's result has the time of the window's end."""
    ingestion_s: Quantiles = field(default_factory=dict)
    """Latency from ingestion to delivery, for rows that passed through no keyed step."""


@dataclass(frozen=True, kw_only=True)
class LookupRecord:
    """One lookup step in the batch."""

    requests: int = 0
    hits: int = 0
    """Keys answered from the cache."""
    misses: int = 0
    """Keys requested from the store."""
    missing: int = 0
    """Requested keys that the store does not have."""
    errors: int = 0
    """Requests that failed."""
    request_s: Quantiles = field(default_factory=dict)
    """How long requests took."""


@dataclass(frozen=True, kw_only=True)
class BatchRecord:
    """The record of a delivered batch; or of several old batches merged into one."""

    batch: int
    """The batch number; of several batches, the last one's."""
    batches: int = 1
    """The number of batches in this record."""
    run: int = 1
    """The number of the run, counted from 1 for each start on the checkpoint."""
    at_ms: int
    """When the batch was delivered and its clock written."""
    now_ms: int
    """The batch's processing time, as logged by Spark."""
    seconds: float = 0.0
    """How long the batch took, without Spark's planning."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """The parts of `seconds`: "front", "keyed" (with the shuffle between them), "sinks", "clock"."""
    spark_s: dict[str, float] = field(default_factory=dict)
    """Spark's timings of the previous batch: "queryPlanning", "latestOffset", "addBatch", "walCommit" and others."""
    streams: dict[str, StreamRecord] = field(default_factory=dict)
    steps: dict[str, StepRecord] = field(default_factory=dict)
    outputs: dict[str, OutputRecord] = field(default_factory=dict)
    sinks: dict[str, SinkStats] = field(default_factory=dict)
    lookups: dict[str, LookupRecord] = field(default_factory=dict)

    @property
    def first_batch(self) -> int:
        """The number of the first batch in this record."""
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
        return {"form": FORM, **plain}

    def to_line(self) -> str:
        """Return the record as one line of JSON, without the line break."""
        return json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, facts: Any) -> BatchRecord:  # noqa: ANN401  parsed JSON
        """Return the record of a `to_json` result; raise a `ValueError` for anything else."""
        try:
            if (form := facts["form"]) != FORM:
                raise AnotherVersionError.of(form, known=FORM)
            record = cls(
                **{
                    **{name: value for name, value in facts.items() if name != "form"},
                    "streams": {name: _stream(found) for name, found in facts.get("streams", {}).items()},
                    **{
                        part: {name: kind(**found) for name, found in facts.get(part, {}).items()}
                        for part, kind in _KINDS.items()
                    },
                }
            )
            if not all(isinstance(known, int) for known in (record.batch, record.batches, record.run, record.at_ms)):
                raise DamageError("it has no batch")
        except (KeyError, TypeError, AttributeError) as error:
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
    """Return dataclasses as dictionaries without fields that have their default value."""
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
