"""Conformance cases of joins: a case as a pipeline that joins two sides of one stream, its input and result rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import polars as pl

from slackwater import sinks
from slackwater.base.durations import FOREVER
from slackwater.operators.late_rows import Late
from slackwater.pipeline import Pipeline
from slackwater.plan.streams import KeyedStream, Results, Stream, stream
from slackwater.sources import Source
from slackwater.testing.cases import (
    FORGETFUL,
    STREAM,
    Case,
    CaseColumn,
    Event,
    Row,
    pipeline_name,
)
from slackwater.testing.harness import rows_source

_LATE: Final[dict[str, Late]] = {"drop": "output", "process": "process", "join": "process"}


class JoinPipeline:
    """A case of an interval or temporal join as a pipeline, with all rows in the form of the case file."""

    def __init__(self, case: Case, source: Callable[[pl.Schema], Source] = rows_source) -> None:
        events = [event for step in case["steps"] for event in step["events"]]
        self.key, self.value = (CaseColumn.of(event[name] for event in events) for name in ("key", "value"))
        columns = {"key": self.key.dtype, "ts_ms": pl.Int64(), "value": self.value.dtype}
        schema = pl.Schema({**columns, "side": pl.String(), "op": pl.String()})
        rows = stream(STREAM, source(schema)).event_time("ts_ms", out_of_orderness=FORGETFUL)
        self.results = _joined(case, _side(rows, "left"), _side(rows, "right"))
        self.kept = (sinks.memory(), sinks.memory(), sinks.memory())
        shown, late, dead = self.kept
        ends = [self.results.to(shown), rows.dead_letters.to(dead)]
        ends += [self.results.late.to(late)] if _late(case) == "output" else []
        self.pipeline = Pipeline(pipeline_name(case["id"]), *ends, key_groups=4)

    def rows(self, events: Sequence[Event]) -> list[Row]:
        """Return `events` as rows of the source."""
        return [
            {
                "key": self.key.encode(event["key"]),
                "ts_ms": event["ts_ms"],
                "value": self.value.encode(event["value"]),
                "side": event["side"],
                "op": event.get("op"),
            }
            for event in events
        ]

    def shown(self, results: pl.DataFrame) -> list[Row]:
        """Return result rows in the form of the case file."""
        return [
            {
                "key": self.key.decode(row["key"]),
                "left": self.value.decode(row["value"]),
                "right": self.value.decode(row["value_right"]),
            }
            for row in results.iter_rows(named=True)
        ]

    def late(self, rows: pl.DataFrame) -> list[Row]:
        """Return rows of the late output in the form of the case file."""
        return [
            {
                "side": row.get("side", "left"),
                "key": self.key.decode(row["key"]),
                "ts_ms": row["ts_ms"],
                "value": self.value.decode(row["value"]),
            }
            for row in rows.iter_rows(named=True)
        ]


def _side(rows: Stream, side: str) -> KeyedStream:
    columns = ["key", "ts_ms", "value", *(["op"] if side == "right" else [])]
    return rows.where(pl.col("side") == side).select(*columns).key_by("key")


def _joined(case: Case, left: KeyedStream, right: KeyedStream) -> Results:
    join, late = case["params"]["join"], _late(case)
    if case["operator"] == "interval_join":
        return left.join(right, between=_between(join), how=join["type"], late=late)
    # In a case, a version without a value ends the previous version.
    ends = (pl.col("op") == "delete") | pl.col("value").is_null()
    return left.join_as_of(right, how=join["type"], versions_ttl=FOREVER, deleted=ends, late=late)


def _between(join: Mapping[str, Any]) -> tuple[timedelta, timedelta]:
    """Return the bounds of a case as inclusive bounds, in whole milliseconds."""
    lower = join["lower_ms"] + (0 if join.get("lower_inclusive", True) else 1)
    upper = join["upper_ms"] - (0 if join.get("upper_inclusive", True) else 1)
    return timedelta(milliseconds=lower), timedelta(milliseconds=upper)


def _late(case: Case) -> Late:
    """Return how a case handles late rows."""
    switches = case["params"].get("semantics", {})
    name = "late_join_rows" if case["operator"] == "interval_join" else "late_probe"
    return _LATE[switches.get(name, "drop")]
