"""The pipeline of the case `cold-start`: `slackwater run benchmarks/cold_start_pipeline.py --bounded`."""

import os
from pathlib import Path

import slackwater as sw

_OUT = Path(os.environ["COLD_START_OUT"])

events = (
    sw.stream("events", sw.sources.log(os.environ["COLD_START_LOG"]))
    .decode(sw.formats.json("event_id long, key string, ts long, value double"))
    .event_time("ts", out_of_orderness="10s")
)
counted = events.key_by("key").window(sw.tumbling("1m")).aggregate(n=sw.count(), total=sw.sum("value"))
pipeline = sw.Pipeline(
    "cold-start",
    counted.to(sw.sinks.files(_OUT / "results")),
    counted.late.to(sw.sinks.files(_OUT / "late")),
    events.dead_letters.to(sw.sinks.files(_OUT / "dead")),
)
