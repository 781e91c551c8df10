"""Large states in chunks: what is touched is read and written, and users see the same as without chunks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.process.chunks import place_of
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.process.chunk_sizes import tiny_chunks
from tests.operators.process.test_time_of_state import MS

MANY = 20_000
BLOBS_OF_ONE_EVENT = 40_000
"""Far more bytes than an event needs, far fewer than the key has."""


class Does(sw.Process):
    """Does what an event says, `n` times."""

    items = sw.list_state("long", ttl="1h")
    table = sw.map_state("string", "long", ttl="1h")
    members = sw.set_state("long", ttl=sw.FOREVER)

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        made = getattr(self, event["does"])(event["n"], ctx)
        if made is not None:
            yield {"o": str(made)}

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"o": f"timer {ctx.timer} {when.microsecond // 1000}"}

    def add(self, n: int, ctx: sw.Context) -> None:
        for each in range(n):
            self.items.add(each)

    def put(self, n: int, ctx: sw.Context) -> None:
        for each in range(n):
            self.table.set(f"k{each}", each)

    def join(self, n: int, ctx: sw.Context) -> None:
        for each in range(n):
            self.members.add(each)

    def timers(self, n: int, ctx: sw.Context) -> None:
        for each in range(n):
            ctx.set_timer(ctx.event_time + each * MS, name=f"t{each}" if each % 3 == 0 else "")

    def get(self, n: int, ctx: sw.Context) -> str:
        return f"{self.table.get(f'k{n}')} {f'k{n}' in self.table} {n in self.members}"

    def remove(self, n: int, ctx: sw.Context) -> None:
        self.table.remove(f"k{n}")
        self.members.remove(n)
        ctx.delete_timer(ctx.event_time + n * MS)

    def remove_most(self, n: int, ctx: sw.Context) -> None:
        for each in range(n):
            self.remove(each, ctx)
        self.items.set(self.items.get()[n:])

    def everything(self, n: int, ctx: sw.Context) -> str:
        assert len(self.items) == len(self.items.get())
        assert len(self.table) == len(self.table.items())
        assert len(self.members) == len(self.members.get())
        return f"{self.items.get()} {self.table.items()} {[*self.members]}"

    def fail(self, n: int, ctx: sw.Context) -> None:
        self.remove_most(n, ctx)
        self.table.clear()
        self.items.clear()
        self.add(n, ctx)
        self.put(2 * n, ctx)
        raise ValueError("on purpose")


def started() -> tuple[Harness, Results]:
    source = sw.testing.rows_source("key long, does string, n long, ts long")
    events = sw.stream("events", source).event_time("ts")
    results = events.key_by("key").process(Does(), output="o string")
    ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
    return Harness(sw.Pipeline("p", *ends, key_groups=1)), results


def done(test: Harness, does: str, n: int = 1, ts: int = 0) -> None:
    test.send("events", [{"key": 1, "does": does, "n": n, "ts": ts}]).run_batch()


def shown_by(test: Harness, results: Results) -> list[str]:
    return test.output(results)["o"].to_list()


def blobs(test: Harness) -> dict[str, bytes]:
    return {name: blob for group in test.engine.state.values() for name, blob in group.items()}


@pytest.mark.parametrize("does", ["add", "put", "join", "timers"])
def test_one_more_entry_rewrites_a_fraction_of_a_large_key(does: str) -> None:
    test, _ = started()
    done(test, does, MANY)
    before = blobs(test)
    done(test, does, 1)
    after = blobs(test)
    written = sum(len(blob) for name, blob in after.items() if before.get(name) != blob)
    assert sum(map(len, before.values())) > 2 * BLOBS_OF_ONE_EVENT
    assert 0 < written < BLOBS_OF_ONE_EVENT
    assert len(after) <= len(before) + 2


def test_firing_one_of_many_timers_rewrites_a_fraction() -> None:
    test, results = started()
    done(test, "timers", MANY)
    test.advance_watermark(2)
    assert sorted(shown_by(test, results)) == ["timer  1", "timer t0 0"]
    before = blobs(test)
    test.advance_watermark(3)
    written = sum(len(blob) for name, blob in blobs(test).items() if before.get(name) != blob)
    assert 0 < written < BLOBS_OF_ONE_EVENT
    assert sorted(shown_by(test, results)) == ["timer  1", "timer  2", "timer t0 0"]


@pytest.mark.parametrize("n", [3, 4, 5, 9, 40])
def test_users_see_the_same_with_chunks_as_without(n: int) -> None:
    def run() -> tuple[list[str], pl.DataFrame]:
        test, results = started()
        for does in ("add", "put", "join", "timers"):
            done(test, does, n)
        done(test, "get", n - 1)
        done(test, "fail", n - 1)
        done(test, "everything")
        done(test, "remove", 1)
        done(test, "put", n + 1, ts=5)
        done(test, "everything", ts=6)
        test.restart()
        shown = test.state(results)
        test.advance_watermark(n // 2)
        done(test, "remove_most", n - 2, ts=n)
        done(test, "everything", ts=n)
        test.finish()
        assert [name for name in blobs(test) if name != "index"] != []  # the set is kept forever
        return shown_by(test, results), shown

    plain, shown = run()
    with tiny_chunks():
        chunked, shown_too = run()
    assert chunked == plain
    assert shown_too.select("items", "table", "members").rows() == shown.select("items", "table", "members").rows()
    chunked_timers, plain_timers = (each["timers"].to_list()[0] or [] for each in (shown_too, shown))
    assert sorted(chunked_timers, key=str) == sorted(plain_timers, key=str)


def test_chunks_are_dropped_once_all_their_entries_have_expired() -> None:
    with tiny_chunks():
        test, results = started()
        done(test, "add", 40)
        done(test, "put", 40)
        assert len(blobs(test)) > 10
        test.advance_watermark(3_600_001)
        assert len(blobs(test)) == 0
        done(test, "everything", ts=3_600_001)
    assert shown_by(test, results) == ["[] [] []"]


def test_a_state_that_is_no_longer_declared_loses_its_chunks() -> None:
    class Fewer(Does):
        table = None  # type: ignore[assignment]  # dropped

        def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
            self.items.add(7)
            yield {"o": str(self.items.get())}

    with tiny_chunks():
        test, _ = started()
        done(test, "put", 40)
        done(test, "add", 5)
        source = sw.testing.rows_source("key long, does string, n long, ts long")
        events = sw.stream("events", source).event_time("ts")
        results = events.key_by("key").process(Fewer(), output="o string")
        ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
        changed = Harness(sw.Pipeline("p", *ends, key_groups=1))
        changed.engine.state = test.engine.state
        done(changed, "add")
        assert shown_by(changed, results) == [str([0, 1, 2, 3, 4, 7])]
        assert len(blobs(changed)) <= 5


def test_statistics_count_the_rows_and_bytes_of_chunks() -> None:
    test, _ = started()
    done(test, "add", MANY)
    held = test.last.state["events.process"]
    stored = {name: blob for name, blob in blobs(test).items() if name != "index"}
    assert held["bytes"] == sum(map(len, stored.values()))
    assert held["pieces"] == len(stored)
    assert held["rows"] == MANY + 1


@pytest.mark.parametrize("same", [(1, 1.0), (True, 1), (0.0, -0.0), ("a", "a"), (b"a", bytearray(b"a"))])
def test_equal_keys_have_one_place(same: tuple[Any, Any]) -> None:
    first, second = same
    assert first == second
    assert place_of(first) == place_of(second)
