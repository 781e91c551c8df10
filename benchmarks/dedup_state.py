"""What deduplication remembers and what a batch costs it, in memory: `python -m benchmarks.dedup_state [MILLIONS…]`.

Ids of 36 letters arrive evenly over 24 hours and are remembered for as long. The table says what is stored for each
id, and what processor time KEYED takes for one batch of new ids, and for one of which a tenth came before, somewhere
in the last 12 hours.
"""

from __future__ import annotations

import sys
import time
from typing import Final

import numpy as np
import polars as pl

import slackwater as sw
from slackwater.base.times import MIN_MS
from slackwater.engine.key_groups import group_of
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.deduplication.first import FirstToArrive
from slackwater.operators.deduplication.spec import DeduplicateSpec
from slackwater.operators.ports import ROWS
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import pack
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import DictStore
from slackwater.operators.step import StepRows

GROUPS: Final = 16
_DAY_MS: Final = 86_400_000
_START_MS: Final = 1_700_000_000_000
_FILL_ROWS: Final = 100_000
_BATCH_MS: Final = 60_000


class Groups:
    """The key groups of one deduplication, each with its state."""

    def __init__(self) -> None:
        ids = sw.stream("ids", sw.testing.rows_source("id string, ts long")).event_time("ts")
        kept = ids.key_by("id").deduplicate(within="24h")
        ends = (kept.to(sw.sinks.memory()), kept.duplicates.drop(), kept.late.drop(), ids.dead_letters.drop())
        [step] = sw.Pipeline("ids", *ends, key_groups=GROUPS).plan().steps
        assert isinstance(step.spec, DeduplicateSpec)
        self.operator = FirstToArrive(step.spec)
        self.states = [StepState(step=step.name, store=DictStore()) for _ in range(GROUPS)]

    def run(self, numbers: np.ndarray, now_ms: int) -> tuple[float, int]:
        """Run a batch of ids; returns the seconds that KEYED took, and how many of them were new."""
        rows = pl.DataFrame({"id": numbers}).select(
            pl.format("3f2504e0-4f89-11d3-9a0c-{}", pl.col("id").cast(pl.String).str.zfill(12)).alias("id"),
            (now_ms + pl.int_range(pl.len()) * _BATCH_MS // pl.len()).alias("ts"),
            (now_ms + pl.int_range(pl.len()) * _BATCH_MS // pl.len()).alias("__ts"),
            pl.lit("0").alias("__part"),
            pl.int_range(pl.len()).alias("__off"),
            pl.lit(0).alias("__ingested"),
            pl.lit(now_ms).alias("__end"),
        )
        clock = StepTime(previous_ms=MIN_MS, watermark_ms=now_ms, now_ms=now_ms)
        parts = rows.with_columns(group_of(rows, ["id"], GROUPS)).partition_by("__group", as_dict=True)
        given = {}
        for (group,), part in parts.items():
            blob = pack(part.drop("__group"), self.states[group].step)
            given[group] = StepRows()
            given[group].add(Packet(group, ROWS, self.states[group].step, "", part.height, now_ms, now_ms, blob))
        begun, new = time.process_time(), 0
        for group, packets in given.items():
            out = self.operator.run(packets, clock, self.states[group], stagger=group)
            new += sum(frame.height for frame in out.results)
        return time.process_time() - begun, new

    @property
    def size(self) -> int:
        """Bytes in all key groups."""
        return sum(piece.bytes for state in self.states for piece in state.pieces)

    @property
    def pieces(self) -> int:
        """Blobs in all key groups."""
        return sum(len(state.pieces) for state in self.states)


def measure(ids: int) -> None:
    """Fill the state, then print a line of the table."""
    groups, filled, spent = Groups(), 0, 0.0
    while filled < ids:
        now_ms = _START_MS + _DAY_MS * filled // ids
        seconds, _ = groups.run(np.arange(filled, filled + _FILL_ROWS), now_ms)
        filled, spent = filled + _FILL_ROWS, spent + seconds
    print(
        f"{ids:>11,} ids: {groups.size / ids:5.1f} bytes an id, {groups.size >> 20} MiB in {groups.pieces} blobs; "
        f"filled at {filled / spent:,.0f} ids a second"
    )
    dice, now_ms = np.random.default_rng(1), _START_MS + _DAY_MS
    for rows in (1_000, 10_000, 100_000):
        fresh, _ = groups.run(np.arange(filled, filled + rows), now_ms)
        filled += rows
        mixed = np.arange(filled, filled + rows)
        mixed[::10] = dice.integers(ids // 2, ids, len(mixed[::10]))
        seconds, new = groups.run(mixed, now_ms)
        filled += rows
        print(
            f"            a batch of {rows:>7,}: {fresh * 1000:6.1f} ms if all are new, "
            f"{seconds * 1000:6.1f} ms if a tenth are not ({new:,} new)"
        )


if __name__ == "__main__":
    for millions in map(float, sys.argv[1:] or ["1", "10"]):
        measure(int(millions * 1_000_000))
