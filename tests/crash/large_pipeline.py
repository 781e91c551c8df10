"""A pipeline of two stages whose first one has large outputs; it is killed between the slots that they leave by."""

from __future__ import annotations

import os
from pathlib import Path

import slackwater as sw
from slackwater.connectors.sink import Sink
from slackwater.engine.outputs import evaluated as outputs
from tests.matrix.targets import sink_of

log, out = Path(os.environ["CRASH_LOG"]), Path(os.environ["CRASH_OUT"])
kind, address = os.environ["CRASH_SINK"], os.environ["CRASH_ADDRESS"]
if os.environ["CRASH_SLOTS"]:
    vars(outputs)["PARALLEL_BYTES"] = -1  # the executors write every batch, each its own key groups


def results(name: str, key: str) -> Sink:
    """Return the sink that results go to: the one that is tried."""
    if kind == "files":
        return sw.sinks.files(out / name)
    return sink_of(kind, address, f"{os.environ['CRASH_PLACE']}-{name}", key)


events = (
    sw.stream("events", sw.sources.log(log, max_files_per_batch=1))
    .decode(sw.formats.json("id long, user string, ts long, amount long"))
    .event_time("ts")
)
by_user = events.key_by("user")
shown_at_once = sw.after_watermark(early=sw.after_count(1), late=None, repeat_unchanged=False)
counted = by_user.window(sw.tumbling("1h"), trigger=shown_at_once, name="counted").aggregate(
    n=sw.count(), total=sw.sum("amount"), last_id=sw.last("id")
)
per_minute = by_user.window(sw.tumbling("1m"), name="per_minute").aggregate(n=sw.count(), amount=sw.max("amount"))
per_amount = per_minute.key_by("amount").window(sw.tumbling("1m"), name="per_amount").aggregate(users=sw.sum("n"))

pipeline = sw.Pipeline(
    "large",
    counted.to(results("counted", "user")),
    per_amount.to(results("per_amount", "amount")),
    *(step.late.drop() for step in (counted, per_minute, per_amount)),
    events.dead_letters.drop(),
    key_groups=2,
)
