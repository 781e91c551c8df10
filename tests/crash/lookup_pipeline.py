"""A pipeline that asks three stores about every event, and delivers what they answered to two sinks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import slackwater as sw

log, out = Path(os.environ["CRASH_LOG"]), Path(os.environ["CRASH_OUT"])
urls = json.loads(os.environ["CRASH_ADDRESS"])

events = sw.stream("events", sw.sources.log(log, max_files_per_batch=2)).decode(
    sw.formats.json("id long, user string, ts long, amount long")
)
options: dict[str, Any] = {"key": "user", "cache": None, "timeout": "1s", "retries": 1}
looked_up = (
    events.lookup(sw.lookups.http(urls["http"]), output="a long", name="by_http", **options)
    .lookup(sw.lookups.redis(urls["redis"], prefix="user"), output="b long", name="by_redis", **options)
    .lookup(sw.lookups.postgres(urls["postgres"], "users", key="key"), output="c long", name="by_postgres", **options)
)

pipeline = sw.Pipeline(
    "stores",
    looked_up.to(sw.sinks.files(out / "first")),
    looked_up.to(sw.sinks.files(out / "second")),
    looked_up.dead_letters.to(sw.sinks.files(out / "dead_letters")),
    key_groups=4,
)
