"""Key equality: NaN equals NaN, and -0.0 equals 0.0, in every step and however rows are batched."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.keys import canonical, join_on_keys
from slackwater.engine.front.samples import Sampler
from slackwater.engine.keyed.stage import Stage
from slackwater.engine.skew import Skew
from slackwater.plan.streams import KeyedStream, Results
from slackwater.plan.streams.keyed import Deduplicated
from slackwater.testing import Harness, rows_source

SRC = Path(sw.__file__).parent
NAN, ZERO = math.nan, 0.0


def test_no_other_join_defines_which_keys_are_equal() -> None:
    found = {
        str(path.relative_to(SRC))
        for path in SRC.rglob("*.py")
        if re.search(r"nulls_equal|join_nulls", path.read_text()) and "demo" not in path.parts
    }
    assert found == {"base/keys.py"}


@pytest.mark.parametrize("how", ["left", "inner", "semi", "anti"])
@pytest.mark.parametrize("left", [[NAN], [NAN, NAN], [1.0, NAN], [None], [-0.0]])
@pytest.mark.parametrize("right", [[NAN], [NAN, 1.0], [None], [ZERO]])
def test_join_finds_equal_keys_whatever_the_number_of_rows(how: Any, left: list[float], right: list[float]) -> None:  # noqa: ANN401  a literal
    frames = [
        pl.DataFrame({"k": keys, "n": range(len(keys))}, schema={"k": pl.Float64, "n": pl.Int64})
        for keys in (left, right)
    ]
    ours = canonical(frames[0], ["k"])
    joined = join_on_keys(ours, canonical(frames[1], ["k"]).rename({"n": "m"}), ["k"], how=how)
    same = [sum(repr(mine) == repr(other) for other in right) for mine in ours["k"].to_list()]
    expected = {"left": sum(max(1, n) for n in same), "inner": sum(same), "semi": sum(n > 0 for n in same)}
    assert joined.height == expected.get(how, sum(n == 0 for n in same))
    assert joined.columns == (["k", "n"] if how in ("semi", "anti") else ["k", "n", "m"])


class Count(sw.Process):
    """Counts the events of a key."""

    seen = sw.value_state(pl.Int64, ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        self.seen.set((self.seen.get() or 0) + 1)
        yield {"n": self.seen.get()}


STEPS: dict[str, Callable[[KeyedStream], Results]] = {
    "tumbling": lambda keyed: keyed.window(sw.tumbling("1h"), name="s").aggregate(n=sw.count()),
    "session": lambda keyed: keyed.window(sw.session("1h"), name="s").aggregate(n=sw.count()),
    "count": lambda keyed: keyed.window(sw.count_window(3), name="s").aggregate(n=sw.count()),
    "process": lambda keyed: keyed.process(Count(), output="n long", name="s"),
    "process by time": lambda keyed: keyed.process(Count(), output="n long", name="s", order="event_time"),
    "first": lambda keyed: keyed.deduplicate(within="1h", name="s"),
    "first by time": lambda keyed: keyed.deduplicate(within="1h", keep="first_by_time", name="s"),
    "pattern": lambda keyed: keyed.match(sw.times(any="t >= 0", n=3, within="1h"), name="s"),
}


@pytest.mark.parametrize("cuts", [(3,), (1, 1, 1), (2, 1)])
@pytest.mark.parametrize("keys", [[NAN] * 3, [-0.0, ZERO, -0.0], [None] * 3])
@pytest.mark.parametrize("step", STEPS)
def test_the_rows_of_a_key_meet(step: str, keys: list[float], cuts: tuple[int, ...]) -> None:
    events = sw.stream("events", rows_source("k double, t long")).event_time("t", out_of_orderness="1h")
    results = STEPS[step](events.key_by("k"))
    has_late = step not in ("count", "process")
    late = [results.late.drop()] if has_late else []
    sides = [results.duplicates.drop()] if isinstance(results, Deduplicated) else []
    harness = Harness(sw.Pipeline("p", results.to(sw.sinks.memory()), *late, *sides, events.dead_letters.drop()))
    at = 0
    for size in cuts:
        harness.send("events", [{"k": key, "t": at + n} for n, key in enumerate(keys[at : at + size])]).run_batch()
        at += size
    harness.finish()
    frame = harness.output(results)
    assert [repr(key) for key in frame["k"].unique()] == [repr(keys[1])]
    if "n" in frame.columns:
        assert frame["n"].max() == 3
    else:
        assert frame.height == 1


def test_keys_within_a_microsecond_are_different() -> None:
    events = sw.stream("events", rows_source("k long, t long")).event_time("t")
    stamped = events.with_columns(at=pl.col("k").cast(pl.Datetime("ns", "UTC")))
    first = stamped.key_by("at").deduplicate(within="1h", name="d")
    ends = [first.to(sw.sinks.memory()), first.duplicates.to(sw.sinks.memory()), first.late.drop()]
    harness = Harness(sw.Pipeline("p", *ends, events.dead_letters.drop()))
    harness.send("events", [{"k": key, "t": 0} for key in (1000, 1001, 1999, 2000, 1001)]).finish()
    assert sorted(harness.output(first)["k"]) == [1000, 1001, 1999, 2000]
    assert harness.output(first.duplicates)["k"].to_list() == [1001]


@pytest.mark.parametrize("unit", ["date", "ms", "us", "duration"])
def test_a_key_beyond_what_python_can_hold_does_not_stop_the_job(unit: str) -> None:
    types: dict[str, Any] = {
        "date": pl.Date(),
        "ms": pl.Datetime("ms"),
        "us": pl.Datetime("us", "UTC"),
        "duration": pl.Duration("us"),
    }
    events = sw.stream("events", rows_source("k long, t long")).event_time("t")
    keyed = events.with_columns(at=pl.col("k").cast(pl.Int32 if unit == "date" else pl.Int64).cast(types[unit]))
    first = keyed.key_by("at").deduplicate(within="1h", name="d")
    ends = [first.to(sw.sinks.memory()), first.duplicates.drop(), first.late.drop()]
    harness = Harness(sw.Pipeline("p", *ends, events.dead_letters.drop()))
    far = 2**31 - 1 if unit == "date" else 2**63 - 1
    harness.send("events", [{"k": far, "t": 0}, {"k": 1, "t": 0}, {"k": far, "t": 1}]).finish()
    assert sorted(harness.output(first)["k"]) == [1, far]


def test_statistics_that_fail_do_not_fail_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OverflowError("no statistics today")

    for cls, method in ((Skew, "observe"), (Sampler, "late"), (Sampler, "dead"), (Stage, "_keys")):
        monkeypatch.setattr(cls, method, broken)
    events = sw.stream("events", rows_source("k string, t long")).event_time("t", max_ahead="1h")
    first = events.key_by("k").deduplicate(within="1h", keep="first_by_time", name="d")
    ends = [out.to(sw.sinks.memory()) for out in (first, first.duplicates, first.late, events.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends))
    for t in (10_000, 0, 10**14):
        harness.send("events", [{"k": "x", "t": t}]).run_batch()
    assert harness.last.counts["d"]["unmeasured"] > 0
    harness.finish()
    shown = [harness.output(out).height for out in (first, first.late, events.dead_letters)]
    assert shown == [1, 1, 1]


class CountFrames(sw.FrameProcess):
    """Counts the events of a key."""

    state = "n long"
    ttl = "1h"

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        new = rows.group_by("k", maintain_order=True).agg(pl.len().cast(pl.Int64).alias("new"))
        both = new.join(state, on="k", how="left", nulls_equal=True)
        made = both.select("k", n=pl.col("new") + pl.col("n").fill_null(0))
        return made, made


def test_a_frame_process_takes_no_nan_key() -> None:
    events = sw.stream("events", rows_source("k double, t long")).event_time("t")
    counted = events.key_by("k").process(CountFrames(), output="n long", name="s")
    ends = [counted.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
    harness = Harness(sw.Pipeline("p", *ends))
    for t in range(3):
        harness.send("events", [{"k": NAN, "t": t}, {"k": -0.0, "t": t}, {"k": None, "t": t}]).run_batch()
    assert sorted(map(str, harness.output(counted).select("k", "n").rows())) == sorted(
        str((key, n)) for key in (0.0, None) for n in (1, 2, 3)
    )
    assert harness.output(events.dead_letters)["reason"].to_list() == ["nan_key"] * 3


def test_a_key_that_no_store_can_be_asked_for_is_a_dead_letter() -> None:
    async def name(_: object) -> dict[str, str]:
        return {"name": "x"}

    events = sw.stream("events", rows_source("n int, t long")).event_time("t")
    found = events.with_columns(day=pl.col("n").cast(pl.Date)).lookup(
        sw.lookups.function(name), key="day", output="name string"
    )
    harness = Harness(sw.Pipeline("p", found.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())))
    harness.send("events", [{"n": 2**31 - 1, "t": 0}, {"n": 1, "t": 0}]).finish()
    assert harness.output(found)["name"].to_list() == ["x"]
    assert harness.output(events.dead_letters)["reason"].to_list() == ["lookup_key"]
