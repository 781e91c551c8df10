"""Visits to a shop: one session per visitor and visit, corrected when a late click joins two of them.

    python examples/make_data.py
    slackwater run examples/sessions.py --bounded

A session ends after ten minutes without a click, and after two hours at the latest. Results are
retracted when they change, so the output is a changelog: a row with `is_retraction` repeats an
earlier row that no longer holds.
"""

import polars as pl

import slackwater as sw

clicks = (
    sw.stream("clicks", sw.sources.log("data/clicks", max_files_per_batch=1))
    .decode(sw.formats.json("visitor string, page string, ms long, at timestamp"))
    .event_time("at", out_of_orderness="30s", idle_after="5m", max_ahead="1m")
    .where("page <> 'health'")
    .with_columns(is_checkout=(pl.col("page") == "checkout").cast(pl.Int64))
)
visits = (
    clicks.key_by("visitor")
    .window(
        sw.session("10m", max_length="2h"),
        allowed_lateness="1h",
        accumulation="retracting",
        name="visits",
    )
    .aggregate(
        clicks=sw.count(),
        pages=sw.count_distinct("page"),
        entry=sw.first("page"),
        exit=sw.last("page"),
        slowest=sw.top(1, by="ms", column="page"),
        checkouts=sw.sum("is_checkout"),
    )
)
pipeline = sw.Pipeline(
    "sessions",
    visits.to(sw.sinks.files("out/visits", changelog=True)),
    visits.to(sw.sinks.console()),
    visits.late.to(sw.sinks.files("out/visits_late")),
    clicks.dead_letters.to(sw.sinks.files("out/clicks_dead_letters")),
)
