"""The demo's pipeline, as a user would write it."""

from __future__ import annotations

from pathlib import Path

import slackwater as sw
from slackwater.connectors.sink import Sink

PURCHASES = "purchases_per_minute"
ACTIVE = "active_users"
ACTIVE_WINDOWS = 5
"""The number of windows of the second step that contain an event: they are five minutes long, one every minute."""


def demo_pipeline(folder: Path, elsewhere: Sink | None = None) -> sw.Pipeline:
    """Return purchases per user per minute, and active users per country, over the log in `folder`.

    All outputs go to files; with `elsewhere`, the purchases also go there.
    """
    purchases = (
        sw.stream("purchases", sw.sources.log(folder / "log"))
        .decode(sw.formats.json("event_id string, user_id string, country string, cents long, placed_at timestamp"))
        .event_time("placed_at", out_of_orderness="20s", idle_after="30s", max_ahead="1m")
    )
    per_minute = (
        purchases.key_by("user_id")
        .window(sw.tumbling("1m"), allowed_lateness="2m", name=PURCHASES)
        .aggregate(purchases=sw.count(), cents=sw.sum("cents"))
    )
    active = (
        purchases.key_by("country")
        .window(sw.hopping("5m", every="1m"), allowed_lateness="10m", name=ACTIVE)
        .aggregate(users=sw.count_distinct("user_id"), purchases=sw.count())
    )
    out = folder / "out"
    also = [] if elsewhere is None else [per_minute.to(elsewhere)]
    return sw.Pipeline(
        "demo",
        per_minute.to(sw.sinks.files(out / "purchases_per_minute")),
        *also,
        per_minute.late.to(sw.sinks.files(out / "purchases_per_minute.late")),
        active.to(sw.sinks.files(out / "active_users")),
        active.late.to(sw.sinks.files(out / "active_users.late")),
        purchases.dead_letters.to(sw.sinks.files(out / "dead_letters")),
        key_groups=16,
    )
