"""Card fraud: one decision for every payment, out exactly once.

    python examples/fraud/make_data.py
    slackwater run examples/fraud/pipeline.py --bounded
    python examples/fraud/truth.py            # recomputes every decision from the log, and compares

A payment is looked up in the profile store, compared with the card's last minute, five minutes and hour, and with
what came just before it (a tiny charge tests a stolen card, a large one follows). With `FRAUD_KAFKA=localhost:9092`
payments come from a topic and decisions go to one.
"""

import json
import os
from datetime import timedelta
from pathlib import Path

import polars as pl

import slackwater as sw

PROFILES = Path("data/profiles.json").absolute()  # the workers may run in another folder
KAFKA = os.environ.get("FRAUD_KAFKA")
SPANS = {"last_minute": timedelta(minutes=1), "last_5_minutes": timedelta(minutes=5), "last_hour": timedelta(hours=1)}


async def profiles(cards):
    """Stands in for the profile store; `sw.lookups.redis("redis://…", …)` asks a real one."""
    known = json.loads(PROFILES.read_text())
    return {card: known[card] for card in cards if card in known}


class Velocity(sw.Process):
    """How many payments a card made in the last minute, five minutes and hour, and what they came to."""

    recent = sw.list_state("at timestamp, amount double", ttl="2h")

    def on_event(self, event, ctx):
        now = ctx.event_time
        kept = [one for one in self.recent.get() if one["at"] > now - timedelta(hours=1)]
        kept.append({"at": now, "amount": event["amount"]})
        self.recent.set(kept)
        counts = {name: sum(one["at"] > now - span for one in kept) for name, span in SPANS.items()}
        yield {**counts, "spent_last_hour": round(sum(one["amount"] for one in kept), 2)}


UNUSUAL = [
    (40, pl.col("last_minute") > 3),
    (20, pl.col("last_5_minutes") > 8),
    (30, pl.col("spent_last_hour") > 5 * pl.col("monthly_limit") / 100),
    (20, pl.col("country") != pl.col("home")),
    (50, pl.col("tested_by").is_not_null()),
]
"""The model: the points that a payment gets for each thing that is unusual."""
SCORE = pl.sum_horizontal(pl.when(holds).then(points).otherwise(0) for points, holds in UNUSUAL)
SCORE_IN_SQL = """
    (CASE WHEN last_minute > 3 THEN 40 ELSE 0 END)
    + (CASE WHEN last_5_minutes > 8 THEN 20 ELSE 0 END)
    + (CASE WHEN spent_last_hour > 5 * monthly_limit / 100 THEN 30 ELSE 0 END)
    + (CASE WHEN country <> home THEN 20 ELSE 0 END)
    + (CASE WHEN tested_by IS NOT NULL THEN 50 ELSE 0 END)
"""
"""The same score; `with_columns` takes either form."""
DECISION = "CASE WHEN score >= 70 THEN 'decline' WHEN score >= 40 THEN 'review' ELSE 'approve' END"

payments = (
    sw.stream(
        "payments",
        sw.sources.kafka(KAFKA, topic="payments") if KAFKA else sw.sources.log("data/payments", max_files_per_batch=2),
    )
    .decode(sw.formats.json("payment string, card string, amount double, country string, at timestamp"))
    .event_time("at", out_of_orderness="20s", idle_after="1m", max_ahead="1m")
    .validate(positive="amount > 0")
    .lookup(
        sw.lookups.function(profiles, batch=1_000),
        key="card",
        output="home string, monthly_limit double",
        missing="dead_letter",
    )
)
velocity = payments.key_by("card").process(
    Velocity(),
    adds="last_minute long, last_5_minutes long, last_hour long, spent_last_hour double",
    order="event_time",
    name="velocity",
)
tested = payments.key_by("card").match(
    sw.sequence(small="amount < 2", large="amount > 100 * small.amount", within="1m"), name="tested"
)
decisions = (
    velocity.attach(tested.select(payment="large_payment", tested_by="small_payment"), on="payment", name="decisions")
    .with_columns(score=SCORE)
    .with_columns(decision=DECISION)
    .select("payment", "card", "amount", "decision", "score", *SPANS, "tested_by")
)
pipeline = sw.Pipeline(
    "fraud",
    decisions.to(sw.sinks.kafka(KAFKA, topic="decisions") if KAFKA else sw.sinks.files("out/decisions")),
    late=sw.sinks.files("out/late"),
    dead_letters=sw.sinks.files("out/dead_letters"),
)
