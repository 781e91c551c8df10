"""The pipeline that is killed; run as users run theirs, by `slackwater run`, told its folders by the environment."""

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


def results(name: str) -> Sink:
    """Return the sink that results go to: the one that is tried."""
    if kind == "files":
        return sw.sinks.files(out / name, changelog=True)
    return sink_of(kind, address, f"{os.environ['CRASH_PLACE']}-{name}", "user")


events = (
    sw.stream("events", sw.sources.log(log, max_files_per_batch=2))
    .decode(sw.formats.json("id long, user string, ts long, amount long"))
    .event_time("ts", out_of_orderness="10s", max_ahead="1h")
    .validate(positive="amount > 0")
)
aggregates = {
    "n": sw.count(),
    "total": sw.sum("amount"),
    "ids": sw.collect_list("id"),
    "last_id": sw.last("id"),
    "p90": sw.quantile("amount", 0.9),
}
by_user = events.key_by("user")
per_minute = by_user.window(sw.tumbling("1m"), allowed_lateness="5m", name="per_minute").aggregate(**aggregates)
visits = by_user.window(sw.session("20s"), allowed_lateness="5m", accumulation="retracting", name="visits").aggregate(
    **aggregates
)

pipeline = sw.Pipeline(
    "crash",
    per_minute.to(results("per_minute")),
    per_minute.late.to(sw.sinks.files(out / "per_minute.late", format="json")),
    visits.to(results("visits")),
    visits.late.to(sw.sinks.files(out / "visits.late")),
    events.dead_letters.to(sw.sinks.files(out / "dead_letters")),
    key_groups=4,
)
