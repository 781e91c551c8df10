"""`python -m benchmarks.lookups`: different keys a second that a lookup answers, from stores that take 50 ms.

The stores are real and on this machine, behind a gate that holds every answer back. The time of the process itself says
what a key costs here; what is left of the time is waiting.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

import slackwater as sw
from slackwater.connectors.lookup import Lookup
from slackwater.engine.enrichment.stats import LookupStats
from tests.connectors.lookup_stores import KINDS, ask, at_work

LATENCY_S: Final = 0.05
KEYS: Final = [f"user-{number}" for number in range(40_000)]
_OUTPUT: Final = "name string, visits long, member boolean"
_ROW: Final = {
    "name": "Ada Lovelace",
    "visits": 12,
    "score": 0.5,
    "member": True,
    "since": "2026-03-01T12:00:00Z",
    "born": "1815-12-10",
    "code": "AAEC",
}


def measured(lookup: Lookup, concurrency: int) -> tuple[float, float, LookupStats]:
    """Return keys a second, seconds of this process for a thousand keys, and the statistics; connections are open."""
    step = at_work(lookup, _OUTPUT, timeout="30s", concurrency=concurrency)
    ask(step, *KEYS[:10])
    stats = LookupStats()
    began, busy = time.perf_counter(), time.process_time()
    got = ask(step, *KEYS, stats=stats)
    took_s, busy_s = time.perf_counter() - began, time.process_time() - busy
    assert not got.failed, got.failed
    assert got.answers["name"].null_count() == 0
    return len(KEYS) / took_s, busy_s / len(KEYS) * 1_000, stats


async def one(key: str) -> dict[str, object]:
    """Answer for a key after a while."""
    await asyncio.sleep(LATENCY_S)
    return {"name": key, "visits": 1, "member": True}


async def many(keys: list[str]) -> dict[str, dict[str, object]]:
    """Answer for many keys after a while."""
    await asyncio.sleep(LATENCY_S)
    return {key: {"name": key, "visits": 1, "member": True} for key in keys}


def main() -> None:
    """Measure every store, and print a table."""
    shown = Table(title=f"{len(KEYS):,} different keys, a store of {LATENCY_S * 1_000:.0f} ms")
    for title in ("store", "at once", "keys/s", "CPU ms a thousand keys", "requests", "p50 ms", "p99 ms"):
        shown.add_column(title, justify="left" if title == "store" else "right")

    def add(kind: str, lookup: Callable[[], Lookup], concurrency: int) -> None:
        rate, busy_s, stats = measured(lookup(), concurrency)
        facts = (
            f"{rate:,.0f}",
            f"{busy_s * 1_000:,.1f}",
            f"{stats.requests:,}",
            f"{stats.p50_ms:,.0f}",
            f"{stats.p99_ms:,.0f}",
        )
        shown.add_row(kind, f"{concurrency:,}", *facts)

    for kind in ("redis", "redis, json", "postgres", "http"):
        with tempfile.TemporaryDirectory(prefix="slackwater-lookups-") as folder:
            store = KINDS[kind](Path(folder))
            try:
                store.put(dict.fromkeys(KEYS, _ROW))
                store.gate.delay_s = LATENCY_S
                add(kind, store.lookup, 100)
            finally:
                store.stop()
    add("function, 500 keys a call", lambda: sw.lookups.function(many, batch=500), 100)
    add("function, 1 key a call", lambda: sw.lookups.function(one), 2_000)
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
