"""`python -m benchmarks.postgres`: upserts a second into Postgres, exactly once, by one slot and by two.

Each batch has 200,000 rows (user, window_start, four values), in random order; half of them are of keys that the table
has from the batches before. The server is a local one with the settings it comes with, on the same cores. A slot is a
process of its own, as an executor's task is. The better of several turns counts: on a machine that does other things as
well, the others are slower for reasons of their own. Fails below the floor.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.postgres.sink import postgres
from slackwater.testing import SinkHarness

ROWS: Final = 200_000
FLOOR: Final = 50_000
_SEED: Final = 20_240_131
_START_MS: Final = 1_700_000_000_000
_USERS: Final = 50_000
SCHEMA: Final = pl.Schema(
    {
        "user": pl.String(),
        "window_start": pl.Datetime("us", "UTC"),
        "count": pl.Int64(),
        "total": pl.Float64(),
        "least": pl.Float64(),
        "most": pl.Float64(),
    }
)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one process did."""

    rows: int
    began: float
    ended: float


def batches(count: int, slot: int) -> Iterator[pl.DataFrame]:
    """Give batches of which half the rows have new keys and half known ones; keys of different slots are disjoint."""
    dice = np.random.default_rng(_SEED + slot)
    known = 0
    for _ in range(count):
        fresh = np.arange(known, known + (ROWS // 2 if known else ROWS))
        again = dice.choice(known, ROWS - len(fresh), replace=False) if known else np.array([], dtype=np.int64)
        keys = dice.permutation(np.concatenate([fresh, again]))
        known += len(fresh)
        values = dice.random((3, ROWS)) * 100
        yield (
            pl.DataFrame({"key": keys, "total": values[0], "least": values[1], "most": values[2]})
            .with_columns(
                user=pl.format("user-{}-{}", pl.lit(slot), pl.col("key") % _USERS),
                window_start=pl.from_epoch(_START_MS + pl.col("key") // _USERS * 60_000, time_unit="ms"),
                count=pl.col("key") % 17 + 1,
            )
            .with_columns(pl.col("window_start").dt.cast_time_unit("us").dt.replace_time_zone("UTC"))
            .select(SCHEMA.names())
        )


def write(url: str, slot: int, count: int, ready: Any, done: Any) -> None:  # noqa: ANN401  a Barrier and a Queue
    """Deliver batches through one slot; the first fills the table and is not counted."""
    first, *rest = batches(count + 1, slot)
    sink = postgres(url, "results", upsert_on=["user", "window_start"], create=True)
    with SinkHarness(sink=sink, schema=SCHEMA, slot=slot) as job:
        job.deliver(first)
        ready.wait()
        began = time.time()
        for rows in rest:
            job.deliver(rows)
        done.put(Turn(rows=ROWS * len(rest), began=began, ended=time.time()))


def measure(server: LocalServer, slots: int, count: int, turn: int) -> float:
    """Return rows a second of `slots` processes that write at the same time, into a table of their own."""
    name = f"slots_{slots}_turn_{turn}"
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    url = server.url(database=name)
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(slots), context.Queue()
    processes = [
        context.Process(target=write, args=(url, slot, count // slots, ready, done)) for slot in range(1, slots + 1)
    ]
    for process in processes:
        process.start()
    turns: list[Turn] = [done.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    with server.connect(database=name) as look:
        found = look.execute("SELECT count(*) FROM results").fetchone()
    expected = slots * ROWS * (1 + (count // slots) / 2)
    if found != (expected,):
        sys.exit(f"the table has {found} rows, expected {expected:,.0f}")
    return sum(turn.rows for turn in turns) / (max(turn.ended for turn in turns) - min(turn.began for turn in turns))


def main() -> int:
    """Measure, print a table, and return 1 below the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=6, help="batches of a turn that are counted (6)")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = LocalServer(folder=Path(folder) / "data").start()
        try:
            rates = {
                slots: max(measure(server, slots, options.batches, turn) for turn in range(options.turns))
                for slots in (1, 2)
            }
        finally:
            server.stop()
    print(f"{'slots':>5}  {'upserts/s':>10}  {'floor':>7}")
    for slots, rate in rates.items():
        print(f"{slots:>5}  {rate:>10,.0f}  {FLOOR:>7,}  {'ok' if rate >= FLOOR else 'TOO SLOW'}")
    return 0 if min(rates.values()) >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
