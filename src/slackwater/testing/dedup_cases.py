"""Conformance cases of deduplication: a case as a pipeline, its input rows and its result rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import polars as pl

from slackwater import sinks
from slackwater.base.durations import FOREVER
from slackwater.operators.deduplication.spec import Keep
from slackwater.pipeline import Pipeline
from slackwater.plan.streams import Deduplicated, stream
from slackwater.sources import Source
from slackwater.testing.cases import (
    FORGETFUL,
    STREAM,
    Case,
    CaseColumn,
    Event,
    Row,
    UnknownInCaseError,
    pipeline_name,
)
from slackwater.testing.harness import rows_source

_KEEP: Final[dict[str, Keep]] = {
    "first_arrival": "first",
    "first_by_time": "first_by_time",
    "last_by_time": "last_by_time",
}


class DedupPipeline:
    """A deduplication case as a pipeline, with all rows in the form of the case file."""

    def __init__(self, case: Case, source: Callable[[pl.Schema], Source] = rows_source) -> None:
        events = [event for step in case["steps"] for event in step["events"]]
        self.key, self.value = (CaseColumn.of(event[name] for event in events) for name in ("key", "value"))
        asked = case["params"]["dedup"]
        self.has_late = bool(asked.get("drop_late", True))
        schema = pl.Schema({"key": self.key.dtype, "ts_ms": pl.Int64(), "value": self.value.dtype})
        rows = stream(STREAM, source(schema)).event_time("ts_ms", out_of_orderness=FORGETFUL)
        keys = ("key", "ts_ms") if asked.get("key_includes_time") else ("key",)
        self.results = self._results(asked, rows.key_by(*keys).deduplicate)
        self.kept = (sinks.memory(), sinks.memory(), sinks.memory())
        shown, late, dead = self.kept
        ends = [self.results.to(shown), self.results.duplicates.drop(), rows.dead_letters.to(dead)]
        ends += [self.results.late.to(late)] if self.has_late else []
        self.pipeline = Pipeline(pipeline_name(case["id"]), *ends, key_groups=4)

    def _results(self, asked: Mapping[str, Any], deduplicate: Callable[..., Deduplicated]) -> Deduplicated:
        if asked["mode"] not in _KEEP:
            raise UnknownInCaseError(f"mode {asked['mode']!r}")
        within = timedelta(milliseconds=asked["expire_after_ms"]) if "expire_after_ms" in asked else FOREVER
        return deduplicate(within=within, keep=_KEEP[asked["mode"]], late="output" if self.has_late else "process")

    def rows(self, events: Sequence[Event]) -> list[Row]:
        """Return `events` as rows of the source."""
        return [
            {"key": self.key.encode(event["key"]), "ts_ms": event["ts_ms"], "value": self.value.encode(event["value"])}
            for event in events
        ]

    def shown(self, results: pl.DataFrame) -> list[Row]:
        """Return result rows in the form of the case file."""
        return [{**self._row(row), "retract": row.get("is_retraction", False)} for row in results.iter_rows(named=True)]

    def late(self, rows: pl.DataFrame) -> list[Row]:
        """Return rows of the late output in the form of the case file."""
        return [self._row(row) for row in rows.iter_rows(named=True)]

    def _row(self, row: Mapping[str, Any]) -> Row:
        key, value = self.key.decode(row["key"]), self.value.decode(row["value"])
        return {"key": key, "ts_ms": row["ts_ms"], "value": value}
