"""Pipelines of one keyed step in memory, whose state is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import slackwater as sw
from slackwater.plan.streams import Results, Stream
from slackwater.plan.streams.stream import Ended

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROWS = "user string, shop long, v double, t timestamp"


def at(seconds: float) -> datetime:
    """Return a time so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def events(name: str = "events") -> Stream:
    """Return the stream of rows that `row` makes."""
    return sw.stream(name, sw.testing.rows_source(ROWS)).event_time("t")


def row(user: str | None, seconds: float, v: float = 1.0, shop: int = 1) -> dict[str, Any]:
    """Return one row."""
    return {"user": user, "shop": shop, "v": v, "t": at(seconds)}


def harness(
    stream: Stream,
    results: Results,
    batches: Sequence[Sequence[dict[str, Any]]],
    *,
    late: bool = True,
    **outputs: Ended,
) -> sw.testing.Harness:
    """Run batches of rows through a pipeline of one step."""
    ends = [results.to(sw.sinks.memory()), *outputs.values(), *([results.late.drop()] if late else [])]
    harness = sw.testing.Harness(sw.Pipeline("held", *ends, stream.dead_letters.drop(), key_groups=4))
    for rows in batches:
        harness.send(stream.name, rows)
        harness.run_batch()
    return harness
