"""A store that takes 50 ms is asked so that 20,000 different keys a second are possible; figures are printed."""

from __future__ import annotations

import asyncio
import time

import pytest

import slackwater as sw
from slackwater.connectors.lookup import Lookup
from slackwater.engine.enrichment.stats import LookupStats
from tests.connectors.lookup_stores import Store, ask, at_work, row

LATENCY_S = 0.05
GOAL = 20_000
KEYS = [f"user-{number}" for number in range(10_000)]


def rounds(lookup: Lookup, kind: str, concurrency: int = 100) -> int:
    """Ask for all keys, print how fast that was, and return how often a request had to wait for those before it.

    The time itself depends on what else the machine does; `python -m benchmarks.lookups` is for a quiet one.
    """
    step = at_work(lookup, "name string, visits long", timeout="30s", concurrency=concurrency)
    ask(step, *KEYS[:10])
    stats = LookupStats()
    began = time.perf_counter()
    got = ask(step, *KEYS, stats=stats)
    rate = len(KEYS) / (time.perf_counter() - began)
    print(f"\n{kind}: {rate:,.0f} keys/s, {stats.requests} requests, p50 {stats.p50_ms} ms, p99 {stats.p99_ms} ms")
    assert got.failed == {}
    assert got.answers["visits"].null_count() == 0
    return -(-stats.requests // min(concurrency, lookup.most_at_once))


@pytest.mark.parametrize("store", ["redis", "redis, json", "postgres", "http"], indirect=True, scope="module")
def test_a_store_that_takes_many_keys_a_request_is_asked_in_few_rounds(store: Store) -> None:
    values = {**row(1), "visits": 1}
    store.put(dict.fromkeys(KEYS, values))
    store.gate.delay_s = LATENCY_S
    try:
        assert rounds(store.lookup(), store.kind) * LATENCY_S <= len(KEYS) / GOAL / 2
    finally:
        store.gate.delay_s = 0.0


def test_a_function_of_many_keys_is_called_in_few_rounds() -> None:
    async def fetch(keys: list[str]) -> dict[str, dict[str, object]]:
        await asyncio.sleep(LATENCY_S)
        return {key: {"name": key, "visits": 1} for key in keys}

    lookup = sw.lookups.function(fetch, batch=500)
    assert rounds(lookup, "function, 500 keys a call") * LATENCY_S <= len(KEYS) / GOAL / 2


def test_a_function_of_one_key_is_called_a_thousand_times_at_once_if_that_is_chosen() -> None:
    async def fetch(key: str) -> dict[str, object]:
        await asyncio.sleep(LATENCY_S)
        return {"name": key, "visits": 1}

    found = rounds(sw.lookups.function(fetch), "function, 1 key a call", concurrency=2_000)
    assert found * LATENCY_S <= len(KEYS) / GOAL / 2
