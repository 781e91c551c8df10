"""Conformance cases of windows: a case file as a pipeline, its input rows and its result rows.

`tests/conformance/README.md` describes the format of a case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl

from slackwater import sinks
from slackwater.base.times import EPOCH
from slackwater.operators import aggregates
from slackwater.operators.aggregates.base import Aggregate
from slackwater.operators.windows.spec import Accumulation, Semantics
from slackwater.operators.windows.triggers import (
    AfterCount,
    Every,
    EveryEventTime,
    Never,
    Trigger,
    after_count,
    after_watermark,
    every,
    every_event_time,
    never,
)
from slackwater.pipeline import Pipeline
from slackwater.plan.streams import Results, stream
from slackwater.sources import Source
from slackwater.testing.harness import rows_source
from slackwater.windows import Window, count_window, cumulative, global_window, hopping, session, tumbling

Case = Mapping[str, Any]
Event = Mapping[str, Any]
Row = dict[str, Any]

STREAM: Final = "events"
OPERATORS: Final = ("assign", "dedup", "interval_join", "temporal_join", "window_agg")
"""The supported operators; cases of other operators are skipped."""
DEFAULTS: Final = {
    "session_touch": "merge",
    "session_lateness": "after_merge",
    "on_time_pane": "always",
    "empty_on_time_pane": "skip",
    "retract_unchanged": "skip",
    "on_close": "discard",
}
"""The meaning of switches that a case does not set; not always Slackwater's own defaults."""
_ACCUMULATION: Final[dict[str, Accumulation]] = {
    "discarding": "discarding",
    "accumulating": "accumulating",
    "accumulating_retracting": "retracting",
}
FORGETFUL: Final = timedelta(days=36_500)
"""An out-of-orderness so large that only a case's own steps move the watermark."""


class UnknownInCaseError(ValueError):
    """A case uses something that the format does not define."""


def reason_to_skip(case: Case) -> str | None:
    """Return why `case` cannot be replayed, or None."""
    operator = case["operator"]
    if operator not in OPERATORS:
        return f"{operator} is not built yet"
    return None


@dataclass(frozen=True)
class CaseColumn:
    """The type of one column of a case's rows, chosen from its values."""

    dtype: pl.DataType
    is_text: bool = False
    """Whether values of mixed types are stored as JSON text."""

    @classmethod
    def of(cls, values: Iterable[object]) -> CaseColumn:
        """Return the narrowest column that can hold `values`."""
        kinds = {type(value) for value in values if value is not None}
        for known, dtype in (({bool}, pl.Boolean()), ({int}, pl.Int64()), ({int, float}, pl.Float64())):
            if kinds and kinds <= known:
                return cls(dtype)
        if not kinds:
            return cls(pl.Int64())
        return cls(pl.String(), is_text=kinds != {str})

    def encode(self, value: object) -> object:
        """Return `value` as stored in the column."""
        return json.dumps(value, sort_keys=True) if self.is_text and value is not None else value

    def decode(self, value: Any) -> Any:  # noqa: ANN401  any value of a case file
        """Return the original value of an encoded one."""
        return json.loads(value) if self.is_text and value is not None else value


class CasePipeline:
    """A windowed case as a pipeline: input rows, results and late rows all have the form used in the case file."""

    def __init__(self, case: Case, source: Callable[[pl.Schema], Source] = rows_source) -> None:
        self._source = source
        params = case["params"]
        events = [event for step in case["steps"] for event in step["events"]]
        self.default_gap_ms = params["window"].get("gap_ms")
        self.key, self.value = (CaseColumn.of(event[name] for event in events) for name in ("key", "value"))
        self.agg: str = params.get("agg", "count")
        self.results = self._results(params, has_gaps=any("gap_ms" in event for event in events))
        self.kept = (sinks.memory(), sinks.memory(), sinks.memory())
        shown, late, dead = self.kept
        self.pipeline = Pipeline(
            pipeline_name(case["id"]),
            self.results.to(shown),
            *([] if params["window"]["type"] == "count" else [self.results.late.to(late)]),
            stream_of(self.results).dead_letters.to(dead),
            key_groups=4,
        )
        self._arrived = 0

    def _results(self, params: Mapping[str, Any], *, has_gaps: bool) -> Results:
        switches = DEFAULTS | params.get("semantics", {})
        columns = {"key": self.key.dtype, "ts_ms": pl.Int64(), "value": self.value.dtype}
        columns |= {"gap_ms": pl.Int64(), "arrival": pl.Int64()}
        window = window_of(params["window"], touching=switches["session_touch"], has_gaps=has_gaps)
        is_counted = params["window"]["type"] == "count"
        is_global = params["window"]["type"] == "global"
        has_early = bool((params.get("trigger") or {}).get("early"))
        # The default trigger is rejected for a global window, because a live job would never see a result.
        # Without early panes nothing can be repeated, so another trigger is equivalent.
        repeats = switches["on_time_pane"] == "always" and (has_early or not is_global)
        return (
            stream(STREAM, self._source(pl.Schema(columns)))
            .event_time("ts_ms", out_of_orderness=FORGETFUL)
            .key_by("key")
            .window(
                window,
                # A global window is never forgotten, so an allowed lateness would be meaningless and is rejected.
                allowed_lateness=_ms(0 if is_global else params.get("allowed_lateness_ms", 0)),
                trigger=None if is_counted else trigger_of(params.get("trigger"), repeats=repeats),
                accumulation=_ACCUMULATION[params.get("accumulation", "accumulating")],
                semantics=Semantics(
                    session_lateness=switches["session_lateness"],
                    empty_on_time_pane=switches["empty_on_time_pane"],
                    retract_unchanged=switches["retract_unchanged"],
                    on_close=switches["on_close"],
                ),
            )
            .aggregate(**aggregates_of(self.agg))
        )

    def rows(self, events: Sequence[Event]) -> list[Row]:
        """Return `events` as rows of the source."""
        rows = [
            {
                "key": self.key.encode(event["key"]),
                "ts_ms": event["ts_ms"],
                "value": self.value.encode(event["value"]),
                "gap_ms": event.get("gap_ms", self.default_gap_ms),
                "arrival": self._arrived + number,
            }
            for number, event in enumerate(events)
        ]
        self._arrived += len(rows)
        return rows

    def shown(self, results: pl.DataFrame) -> list[Row]:
        """Return result rows in the form of the case file."""
        if "window_index" in results.columns:
            return [
                {"key": self.key.decode(row["key"]), "window_index": row["window_index"], "value": self._value(row)}
                for row in results.iter_rows(named=True)
            ]
        return [
            {
                "key": self.key.decode(row["key"]),
                "window_start_ms": _epoch_ms(row["window_start"]),
                "window_end_ms": _epoch_ms(row["window_end"]),
                "value": self._value(row),
                "pane": row["pane"],
                "retract": row["is_retraction"],
            }
            for row in results.iter_rows(named=True)
        ]

    def late(self, rows: pl.DataFrame) -> list[Row]:
        """Return rows of the late output in the form of the case file."""
        return [
            {"key": self.key.decode(row["key"]), "ts_ms": row["ts_ms"], "value": self.value.decode(row["value"])}
            for row in rows.iter_rows(named=True)
        ]

    def _value(self, row: Mapping[str, Any]) -> object:
        match self.agg:
            case "count_sum":
                return {"count": row["count"], "sum": row["sum"]}
            case "list":
                return [self.value.decode(item["value"]) for item in row["value"]]
            case "concat":
                in_order = sorted(row["value"], key=lambda item: item["arrival"])
                return "+".join(str(self.value.decode(item["value"])) for item in in_order)
            case _:
                return row["value"]


def stream_of(results: Results) -> Any:  # noqa: ANN401  the stream before a keyed step
    """Return the stream that a windowed step reads."""
    return next(iter(results.origin.inputs.values())).stream  # type: ignore[union-attr]  # results come from a step


def aggregates_of(name: str) -> dict[str, Aggregate]:
    """Return the aggregates that compute a case's `agg`."""
    # In a list, nulls are values like any other; `collect_list` keeps them inside a struct.
    collected = aggregates.collect_list(pl.struct("value", "arrival"))
    known: dict[str, dict[str, Aggregate]] = {
        "count": {"value": aggregates.count()},
        "list": {"value": collected},
        "concat": {"value": collected},
        "count_sum": {"count": aggregates.count(), "sum": aggregates.sum("value")},
    }
    columns = {"sum": aggregates.sum, "max": aggregates.max, "min": aggregates.min, "avg": aggregates.mean}
    if name in columns:
        return {"value": columns[name]("value")}
    if name not in known:
        raise UnknownInCaseError(f"aggregate {name!r}")
    return known[name]


def window_of(window: Mapping[str, Any], *, touching: Any = "merge", has_gaps: bool = False) -> Window:  # noqa: ANN401  from YAML or JSON
    """Return the window of a case, built with the public constructors; an invalid one raises `DefinitionError`."""
    offset = _ms(window.get("offset_ms", 0))
    match window["type"]:
        case "tumbling":
            return tumbling(_ms(window["size_ms"]), offset=offset)
        case "hopping":
            return hopping(_ms(window["size_ms"]), every=_ms(window["slide_ms"]), offset=offset)
        case "cumulate":
            return cumulative(_ms(window["size_ms"]), every=_ms(window["slide_ms"]), offset=offset)
        case "session":
            return session(pl.col("gap_ms") if has_gaps else _ms(window["gap_ms"]), touching=touching)
        case "global":
            return global_window()
        case "count":
            return count_window(window["size"], every=window["slide"])
        case other:
            raise UnknownInCaseError(f"window {other!r}")


def trigger_of(trigger: Mapping[str, Any] | None, *, repeats: bool) -> Trigger:
    """Return the trigger of a case; `repeats` says whether an unchanged on-time pane is emitted again."""
    trigger = trigger or {"type": "after_watermark"}
    match trigger["type"]:
        case "after_watermark":
            # By default every late row makes a late pane; null means no late panes.
            late = _part(trigger["late"]) if "late" in trigger else after_count(1)
            early = _part(trigger.get("early"))
            if isinstance(late, Every | EveryEventTime):
                raise UnknownInCaseError(f"late trigger {trigger['late']!r}")
            return after_watermark(early=early, late=late, repeat_unchanged=repeats)
        case "count":
            return after_count(trigger["n"], once=not trigger.get("repeat", True))
        case "continuous_event_time":
            return after_watermark(early=every_event_time(_ms(trigger["interval_ms"])), repeat_unchanged=repeats)
        case other:
            raise UnknownInCaseError(f"trigger {other!r}")


def _part(part: Mapping[str, Any] | None) -> AfterCount | Every | EveryEventTime | Never | None:
    if part is None:
        return None
    match part["type"]:
        case "count":
            return after_count(part["n"])
        case "processing_time":
            return every(_ms(part["delay_ms"]))
        case "continuous_event_time":
            return every_event_time(_ms(part["interval_ms"]))
        case "never":
            return never()
        case other:
            raise UnknownInCaseError(f"trigger {other!r}")


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _epoch_ms(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // timedelta(milliseconds=1)


def pipeline_name(case: str) -> str:
    """Return a unique pipeline name for a case, because cases run concurrently in one Spark session."""
    return "case-" + re.sub(r"[^A-Za-z0-9._-]", "-", case)
