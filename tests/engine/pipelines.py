"""Small pipelines that the tests of the rules share."""

from __future__ import annotations

from typing import Any

import slackwater as sw
from slackwater.pipeline import Pipeline
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness, rows_source


def events(schema: str = "k string, ts long, v double", out_of_orderness: str = "0s") -> Stream:
    """Return a stream of typed rows with an event time."""
    return sw.stream("events", rows_source(schema)).event_time("ts", out_of_orderness=out_of_orderness)


def built(*results: Results, key_groups: int = 4, name: str = "rules") -> Pipeline:
    """Return a pipeline of one source stream whose outputs are all kept."""
    ended = [end for result in results for end in (result.to(sw.sinks.memory()), result.late.to(sw.sinks.memory()))]
    return sw.Pipeline(name, *ended, _source(results[0]).dead_letters.drop(), key_groups=key_groups)


def row(k: str, ts_ms: int, v: float = 1.0) -> dict[str, Any]:
    """Return one event."""
    return {"k": k, "ts": ts_ms, "v": v}


def send(harness: Harness, *rows: dict[str, Any], partition: str = "0") -> Harness:
    """Send `rows`, for the next batch."""
    return harness.send("events", list(rows), partition=partition)


def _source(results: Results) -> Stream:
    origin: Any = results
    while not isinstance(origin.origin, sw.sources.Source):
        origin = next(iter(origin.origin.inputs.values())).stream
    source: Stream = origin
    return source
