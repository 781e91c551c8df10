"""A process of frames that adds up, and a pipeline around it in which everything ends in memory."""

from __future__ import annotations

from typing import Any

import polars as pl

import slackwater as sw
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness

Frames = tuple[pl.DataFrame | None, pl.DataFrame]


def added_up(rows: pl.DataFrame, state: pl.DataFrame) -> pl.DataFrame:
    """Return the sum of `x` and the number of rows of each key, with what `state` has of them."""
    new = rows.group_by("key", maintain_order=True).agg(sum=pl.col("x").sum(), rows=pl.len())
    both = new.join(state, on="key", how="left", nulls_equal=True, maintain_order="left")
    return both.select(
        "key", total=pl.col("sum") + pl.col("total").fill_null(0), seen=pl.col("rows") + pl.col("seen").fill_null(0)
    )


class Totals(sw.FrameProcess):
    """Adds up; a negative number fails."""

    state: Any = "total long, seen long"
    ttl: Any = "10ms"

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        if (rows["x"] < 0).any():
            raise ValueError("below zero")
        new = added_up(rows, state)
        return new, new


def totalled(process: Any, schema: str = "key string, ts long, x long", **options: Any) -> tuple[Stream, Results]:  # noqa: ANN401  tests pass anything
    """Return a stream of events, and what a process makes of them."""
    events = sw.stream("events", sw.testing.rows_source(schema)).event_time("ts")
    return events, events.key_by("key").process(process, **{"output": "total long, seen long", **options})


def harness(process: Any, **options: Any) -> tuple[Harness, Results]:  # noqa: ANN401  as above
    """Return a pipeline of one process of frames, with a single key group."""
    events, results = totalled(process, **options)
    ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
    ends += [results.late.to(sw.sinks.memory())] if options.get("order") == "event_time" else []
    return Harness(sw.Pipeline("p", *ends, key_groups=1)), results


def event(key: str | None, ts: int, x: int = 1) -> dict[str, Any]:
    """Return one event."""
    return {"key": key, "ts": ts, "x": x}


def rows_of(test: Harness, results: Results) -> list[tuple[Any, ...]]:
    """Return all results so far."""
    return test.output(results).select("key", "total", "seen", pl.col("event_time").dt.epoch("ms")).rows()
