"""Two streams to be joined, and a pipeline around them in which everything ends in memory."""

from __future__ import annotations

import slackwater as sw
from slackwater.plan.streams import Results, Stream
from slackwater.testing import rows_source


def stream(name: str, ddl: str) -> Stream:
    """Return a stream of typed rows, with their time in `ts`."""
    return sw.stream(name, rows_source(ddl)).event_time("ts")


def pipeline(results: Results, *, has_late: bool = True) -> sw.Pipeline:
    """Return a pipeline of one join."""
    sides = {keyed.stream.name: keyed.stream for keyed in results.origin.inputs.values()}  # type: ignore[union-attr]  # results come from a step
    ends = [results.to(sw.sinks.memory()), *(side.dead_letters.to(sw.sinks.memory()) for side in sides.values())]
    return sw.Pipeline("p", *ends, *([results.late.to(sw.sinks.memory())] if has_late else []))
