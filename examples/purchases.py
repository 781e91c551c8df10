"""Purchases per user per minute: `slackwater run purchases.py`, or to the end of the log with `--bounded`."""

import slackwater as sw

purchases = (
    sw.stream("purchases", sw.sources.log("data/purchases", max_files_per_batch=1))  # tiny batches, to watch time pass
    .decode(sw.formats.json("id string, user string, cents long, placed_at timestamp"))
    .event_time("placed_at", out_of_orderness="10s", max_ahead="1m")
    .validate(positive="cents > 0")
)
per_minute = (
    purchases.key_by("user")
    .window(sw.tumbling("1m"), allowed_lateness="5m", name="per_minute")
    .aggregate(purchases=sw.count(), cents=sw.sum("cents"))
)
pipeline = sw.Pipeline(
    "purchases",
    per_minute.to(sw.sinks.files("out/per_minute")),
    per_minute.late.to(sw.sinks.files("out/late")),
    purchases.dead_letters.to(sw.sinks.files("out/dead_letters")),
)

if __name__ == "__main__":
    pipeline.run(bounded=True)
