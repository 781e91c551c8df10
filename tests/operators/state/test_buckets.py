"""Buckets: what a batch reads of the state depends on what it touches and wakes, not on what is open besides."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import slackwater as sw
from slackwater.base.stable_hash import hash_columns
from slackwater.operators.state import buckets
from slackwater.operators.state import store as memory
from slackwater.operators.windows.triggers import Trigger
from slackwater.testing import Harness, rows_source

HOUR = 3_600_000
START = 100 * HOUR


@dataclass
class Traffic:
    """Bytes of state that were read, besides the index."""

    read: int = 0
    reads: list[str] = field(default_factory=list)


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    seen, get = Traffic(), memory.DictStore.get

    def counted(store: memory.DictStore, key: str) -> bytes | None:
        blob = get(store, key)
        if blob is not None and key != "index":
            seen.read += len(blob)
            seen.reads.append(key)
        return blob

    monkeypatch.setattr(memory.DictStore, "get", counted)
    return seen


def visits(trigger: Trigger = sw.after_watermark()) -> Harness:  # noqa: B008  a definition never changes
    stream = sw.stream("s", rows_source("k string, ts long")).event_time("ts", out_of_orderness="1h")
    results = stream.key_by("k").window(sw.session("1h"), trigger=trigger).aggregate(n=sw.count())
    ends = [results.to(sw.sinks.memory()), results.late.drop(), stream.dead_letters.drop()]
    return Harness(sw.Pipeline("p", *ends, key_groups=1))


def open_sessions(harness: Harness, many: int) -> None:
    """Open sessions whose ends are spread over an hour, and let their rows come to rest."""
    keys = pl.int_range(many, eager=True)
    rows = pl.DataFrame({"k": "u" + keys.cast(pl.String), "ts": START + keys * HOUR // many})
    harness.send("s", rows).run_batch()
    harness.advance_watermark(START)


@pytest.mark.parametrize(
    "trigger", [sw.after_watermark(), sw.after_watermark(early=sw.every("1s"))], ids=["on time", "early"]
)
def test_ten_times_the_untouched_sessions_cost_no_more_than_half_as_much_again(
    traffic: Traffic, trigger: Trigger
) -> None:
    cost = {}
    for many in (20_000, 200_000):
        harness = visits(trigger)
        open_sessions(harness, many)
        traffic.read, step = 0, HOUR // many
        for batch in range(5):
            keys = [f"u{many - 1 - batch * 10 - number}" for number in range(10)]
            harness.send("s", pl.DataFrame({"k": keys, "ts": START + HOUR}))
            harness.advance_watermark(START + HOUR + (batch + 1) * 10 * step)
        assert harness.output("s.window").filter(pl.col("pane") == "on_time").height in range(40, 60)
        cost[many] = traffic.read
    assert cost[200_000] <= 1.5 * cost[20_000]


def test_quiet_batch_reads_nothing(traffic: Traffic) -> None:
    harness = visits()
    open_sessions(harness, 1_000)
    traffic.read = 0
    harness.run_batch()
    harness.advance_watermark(START + 1)
    assert traffic.read == 0


def test_inbox_that_is_emptied_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = visits()
    hashed: list[int] = []

    def counted(rows: pl.DataFrame, columns: list[str]) -> npt.NDArray[np.uint64]:
        hashed.append(rows.height)
        return hash_columns(rows, columns)

    monkeypatch.setattr(buckets, "hash_columns", counted)
    keys = pl.int_range(20_000, eager=True)
    harness.send("s", pl.DataFrame({"k": "u" + keys.cast(pl.String), "ts": START + keys})).run_batch()
    assert hashed.count(20_000) == 2, "once to find its buckets, and once to store it there"


class Visits(sw.FrameProcess):
    """Counts the rows of each key."""

    state = "n long"
    ttl = sw.FOREVER

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        counts = pl.concat([state, rows.group_by("k").agg(n=pl.len().cast(pl.Int64))])
        counts = counts.group_by("k").agg(pl.col("n").sum())
        return counts, counts


def test_batch_that_touches_every_bucket_holds_one_portion_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    many, portion = 60_000, 64 << 10
    monkeypatch.setattr(buckets, "PORTION_BYTES", portion)
    read, held = 0, [0]
    get, put = memory.DictStore.get, memory.DictStore.put

    def counted_get(store: memory.DictStore, key: str) -> bytes | None:
        nonlocal read
        blob = get(store, key)
        if blob is not None and key != "index":
            read, held[-1] = read + len(blob), held[-1] + len(blob)
        return blob

    def counted_put(store: memory.DictStore, key: str, blob: bytes) -> None:
        if held[-1]:
            held.append(0)
        put(store, key, blob)

    stream = sw.stream("s", rows_source("k string, ts long")).event_time("ts", out_of_orderness="1h")
    counts = stream.key_by("k").process(Visits(), output="k string, n long")
    harness = Harness(sw.Pipeline("p", counts.to(sw.sinks.memory()), stream.dead_letters.drop(), key_groups=1))
    keys = "u" + pl.int_range(many, eager=True).cast(pl.String)
    harness.send("s", pl.DataFrame({"k": keys[: many // 3], "ts": START})).run_batch()
    monkeypatch.setattr(memory.DictStore, "get", counted_get)
    monkeypatch.setattr(memory.DictStore, "put", counted_put)
    for share in (2, 1):
        harness.send("s", pl.DataFrame({"k": keys[: many // share], "ts": START})).run_batch()
    assert harness.output("s.process").group_by("k").agg(pl.col("n").max())["n"].sum() == many + many // 2 + many // 3
    assert read > 6 * portion, "buckets were read, to be touched and to be split"
    assert max(held) <= portion
