"""A pipeline with every keyed step that is no plain window, a lookup and a table; it is killed like the other one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import slackwater as sw
from slackwater.plan.streams import Results, Stream

log, out = Path(os.environ["CRASH_LOG"]), Path(os.environ["CRASH_OUT"])
rates = out.parent / "rates.parquet"
if not rates.exists():
    pl.DataFrame({"digit": range(10), "rate": [number * 10 for number in range(10)]}).write_parquet(rates)


async def names(users: list[str]) -> dict[str, dict[str, str]]:
    """Stand in for a store."""
    return {user: {"name": user.upper()} for user in users}


class Spending(sw.Process):
    """What a user has spent, with an alert a minute after every large amount."""

    total = sw.value_state("long", ttl="10m")
    seen = sw.list_state("long", ttl="2m")
    alerts = sw.side_output("at long, total long")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        """Add an amount."""
        self.total.set((self.total.get() or 0) + event["amount"])
        self.seen.add(event["id"])
        if event["amount"] > 900:
            ctx.set_timer(ctx.event_time + sw.duration("1m"))
        yield {"id": event["id"], "total": self.total.get(), "seen": len(self.seen.get())}

    def on_timer(self, when: Any, ctx: sw.Context) -> None:  # noqa: ANN401  as users write it
        """Raise the alert."""
        ctx.emit("alerts", {"at": int(when.timestamp()), "total": self.total.get() or 0})


events = (
    sw.stream("events", sw.sources.log(log, max_files_per_batch=2))
    .decode(sw.formats.json("id long, user string, ts long, amount long"))
    .event_time("ts", out_of_orderness="10s", max_ahead="1h")
    .validate(positive="amount > 0")
    .with_columns(digit="amount % 10")
    .lookup(sw.lookups.function(names), key="user", output="name string")
    .join_table(sw.table(rates), on="digit")
)
small, large = events.where("amount < 300"), events.where("amount > 700")
by_user, minute = events.key_by("user"), sw.tumbling("1m")
payments = large.select("user", "id")
pairs = small.key_by("user").join(payments.key_by("user"), between=("-20s", "20s"), how="full", name="pairs")
priced = small.key_by("user").join_as_of(payments.key_by("user"), how="left", versions_ttl="1h", name="priced")
shared = small.key_by("user").window(minute).join(payments.key_by("user").window(minute), how="left", name="shared")
by_digit = events.key_by("user", "digit")
first = by_digit.deduplicate(within="2m", name="first")
earliest = by_digit.deduplicate(within="2m", keep="first_by_time", name="earliest")
latest = by_digit.deduplicate(within="2m", keep="last_by_time", name="latest")
spending = by_user.process(Spending(), output="id long, total long, seen long", order="event_time", name="spending")
arriving = by_user.process(Spending(), output="id long, total long, seen long", name="arriving")
tested = by_user.match(
    sw.sequence(small="amount < 300", large="amount > 2 * small.amount", within="30s"), name="tested"
)
dozens = by_user.window(sw.count_window(12), name="dozens").aggregate(ids=sw.collect_list("id"))
per_digit = events.key_by("digit", spread=3).window(minute, allowed_lateness="5m", name="per_digit")
per_digit_counts = per_digit.aggregate(n=sw.count(), total=sw.sum("amount"))
paired = pairs.where("id_right is not null").key_by("user").window(minute, name="paired").aggregate(n=sw.count())
RESULTS: list[Results] = [
    pairs, priced, shared, first, earliest, latest, spending, arriving, tested, dozens, per_digit_counts, paired,
]  # fmt: skip
SIDES: list[Stream] = [
    *(kept.duplicates for kept in (first, earliest, latest)),
    *(each.output("alerts") for each in (spending, arriving)),
]


def kept(stream: Any, name: str) -> Any:  # noqa: ANN401  a stream or an output, and what becomes of it
    """End an output in files."""
    return stream.to(sw.sinks.files(out / name, changelog=True))


pipeline = sw.Pipeline(
    "steps",
    *(kept(each, each.name) for each in (*RESULTS, *SIDES)),
    *(kept(each.late, f"{each.name}.late") for each in RESULTS if each not in (arriving, dozens, paired)),
    paired.late.drop(),
    kept(events.dead_letters, "dead_letters"),
    pairs.dead_letters.drop(),
    key_groups=2,
)
