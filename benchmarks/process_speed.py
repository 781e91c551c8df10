"""How many events a second a process takes, in memory: `python -m benchmarks.process_speed`.

KEYED alone, in processor time: rows are unpacked, state is read and written, and the user's code runs. The process is
that of the guide: it compares each amount with the one before it, which it keeps for an hour.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

import slackwater as sw
from slackwater.engine.key_groups import group_of
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.ports import ROWS
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import pack
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import DictStore
from slackwater.operators.step import StepRows

GROUPS: Final = 16
_START_MS: Final = 1_700_000_000_000


class FraudDetector(sw.Process):
    """Finds a large amount right after a small one."""

    last_amount = sw.value_state(pl.Float64, ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:  # noqa: ARG002  as users write it
        """Compare an amount with the one before."""
        previous = self.last_amount.get()
        if previous is not None and event["amount"] > 1000 * previous:
            yield {"card": event["card"], "reason": "large after small"}
        self.last_amount.set(event["amount"])


def measure(keys: int, rows: int, order: Any) -> None:  # noqa: ANN401  one of two
    """Print how fast batches of `rows` events are, once every key has state."""
    source = sw.testing.rows_source("card string, amount double, shop string, ts long")
    cards = sw.stream("cards", source).event_time("ts")
    found = cards.key_by("card").process(FraudDetector(), output="card string, reason string", order=order)
    late = [found.late.drop()] if order == "event_time" else []
    [step] = sw.Pipeline("speed", found.to(sw.sinks.memory()), *late, cards.dead_letters.drop()).plan().steps
    operator, dice = step.spec.operator(), np.random.default_rng(1)
    states = [StepState(step=step.name, store=DictStore()) for _ in range(GROUPS)]
    spent = []
    for number in range(4):
        now = _START_MS + number * 60_000
        batch = pl.DataFrame({"key": dice.integers(0, keys, rows), "amount": dice.exponential(20, rows)}).select(
            pl.format("card-{}", "key").alias("card"),
            "amount",
            pl.lit("a shop").alias("shop"),
            (now + pl.int_range(rows) * 60_000 // rows).alias("ts"),
            (now + pl.int_range(rows) * 60_000 // rows).alias("__ts"),
            pl.lit("0").alias("__part"),
            pl.int_range(rows).alias("__off"),
            pl.lit(0).cast(pl.Int64).alias("__ingested"),
        )
        batch = batch.with_columns(pl.col("__ts").alias("__end"), group_of(batch, ["card"], GROUPS))
        given = [StepRows() for _ in range(GROUPS)]
        for (group,), part in batch.partition_by("__group", as_dict=True, include_key=False).items():
            blob = pack(part, step.name)
            given[group].add(Packet(group, ROWS, step.name, "", part.height, now, now + 60_000, blob))
        clock = StepTime(previous_ms=now - 60_000, watermark_ms=now, now_ms=now)
        begun = time.process_time()
        for group, (packets, state) in enumerate(zip(given, states, strict=True)):
            operator.run(packets, clock, state, stagger=group)
        spent.append(time.process_time() - begun)
    each = sum(spent[1:]) / len(spent[1:])
    print(f"{keys:>9,} keys, {rows:>7,} events a batch, {order:<10}: {rows / each:>9,.0f} events a second and core")


if __name__ == "__main__":
    if "--profile" in sys.argv:
        with cProfile.Profile() as profile:
            measure(10_000, 500_000, "arrival")
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        sys.exit()
    for order in ("arrival", "event_time"):
        for keys, rows in ((1_000, 500_000), (100_000, 500_000), (100_000, 10_000)):
            measure(keys, rows, order)
