"""The pipelines of the latency cases, as users write them: `slackwater run benchmarks/latency/pipelines.py`.

`LATENCY_CASE` says which, `LATENCY_SERVERS` where the broker is. Everything else is a default. Each result has the
`id` of the newest event that it contains.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import slackwater as sw
from slackwater.plan.streams.stream import Stream

SERVERS = os.environ["LATENCY_SERVERS"]
CASE = os.environ["LATENCY_CASE"]
DDL = "id long, key string, ts long, value double"


def events(name: str) -> Stream:
    """Return the stream of a topic."""
    stream = sw.stream(name, sw.sources.kafka(SERVERS, topic=name)).decode(sw.formats.json(DDL))
    return stream.event_time("ts", out_of_orderness="5s")


class Count(sw.Process):
    """Numbers the events of a key."""

    seen = sw.value_state("long", ttl=sw.FOREVER)

    def on_event(self, event: Mapping[str, Any], ctx: sw.Context) -> Iterator[dict[str, int]]:  # noqa: ARG002  as users write it
        """Emit the event with its number."""
        number = (self.seen.get() or 0) + 1
        self.seen.set(number)
        yield {"number": number}


left = events("events")
if CASE == "filter":
    results = left.where("value >= 0.1")
elif CASE == "process":
    results = left.key_by("key").process(Count(), adds="number long")
elif CASE == "window":
    early = sw.after_watermark(early=sw.after_count(1))
    windows = left.key_by("key").window(sw.tumbling("1m"), trigger=early, accumulation="accumulating")
    results = windows.aggregate(id=sw.max("id"), n=sw.count(), total=sw.sum("value"))
elif CASE == "join":
    others = events("others").key_by("id")
    results = left.key_by("id").join(others, between=("-5s", "5s"), suffixes=("", "_other"))
else:
    raise ValueError(CASE)
pipeline = sw.Pipeline(
    f"latency-{CASE}",
    results.to(sw.sinks.kafka(SERVERS, "results", key="key")),
    late=sw.sinks.files("late"),
    dead_letters=sw.sinks.files("dead_letters"),
)
