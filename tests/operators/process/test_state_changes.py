"""State whose declaration has changed: what continues, what is refused before the start, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.testing import Harness
from tests.operators.process.totals import event


def process(cls_name: str = "Counter", **fields: Any) -> sw.Process:  # noqa: ANN401  declarations of state
    """Return a process with some fields, which adds to those that it knows and yields them."""

    def on_event(self: Any, given: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:  # noqa: ANN401
        for name in ("total", "seen"):
            if name in fields:
                getattr(self, name).set((getattr(self, name).get() or 0) + given["x"])
        yield {name: getattr(self, name).get() if name in fields else None for name in ("total", "seen")}

    made: sw.Process = type(cls_name, (sw.Process,), {"on_event": on_event, **fields})()
    return made


def pipeline(own: sw.Process, *, order: Any = "arrival") -> sw.Pipeline:  # noqa: ANN401  one of two words
    events = sw.stream("events", sw.testing.rows_source("key string, ts long, x long")).event_time("ts")
    results = events.key_by("key").process(own, output="total long, seen long", order=order, name="counts")
    late = [results.late.drop()] if order == "event_time" else []
    return sw.Pipeline("p", results.to(sw.sinks.memory()), *late, events.dead_letters.drop(), key_groups=1)


def long(ttl: str = "1h") -> Any:  # noqa: ANN401  what a class declares
    return sw.value_state("long", ttl=ttl)


def values(test: Harness) -> list[tuple[Any, ...]]:
    return test.output("counts").select("key", "total", "seen").rows()


def test_field_that_is_added_is_empty_and_one_that_is_dropped_is_gone() -> None:
    test = Harness(pipeline(process(total=long())))
    test.send("events", [event("a", 1, 5), event("b", 1, 7)]).run_batch()
    test.pipeline = pipeline(process(total=long(), seen=long()))
    test.restart().send("events", [event("a", 2, 1)]).run_batch()
    test.pipeline = pipeline(process(seen=long()))
    test.restart().send("events", [event("a", 3, 1), event("b", 3, 1)]).run_batch()
    assert values(test) == [("a", 5, None), ("b", 7, None), ("a", 6, 1), ("a", None, 2), ("b", None, 1)]


def test_field_that_is_widened_keeps_its_values() -> None:
    test = Harness(pipeline(process(total=sw.value_state(pl.Int16, ttl="1h"))))
    test.send("events", [event("a", 1, 30_000)]).run_batch()
    test.pipeline = pipeline(process(total=long()))
    test.restart().send("events", [event("a", 2, 30_000)]).run_batch()
    assert values(test)[-1] == ("a", 60_000, None)


@pytest.mark.parametrize(
    "before, now",
    [
        (process(total=long()), process(total=long(), seen=long())),
        (process(total=long(), seen=long()), process(seen=long())),
        (process(total=sw.value_state("int", ttl="1h")), process(total=long())),
        (process(total=long("1h")), process(total=long("2h"))),
        (process(total=long()), process("Renamed", total=long())),
    ],
    ids=["added", "dropped", "widened", "another ttl", "another class"],
)
def test_checkpoint_continues_with(tmp_path: Path, before: sw.Process, now: sw.Process) -> None:
    open_checkpoint(tmp_path, pipeline(before).plan(), partitions=2)
    open_checkpoint(tmp_path, pipeline(now).plan(), partitions=2)


@pytest.mark.parametrize(
    "now, shown",
    [
        (process(total=sw.value_state("string", ttl="1h")), "state `total`: value of Int64"),
        (process(total=sw.value_state("int", ttl="1h")), "state `total`: value of Int64"),
        (process(total=sw.list_state("long", ttl="1h")), "state `total`: value of Int64"),
        (process(total=sw.value_state("long", ttl="1h", clock="processing")), "state `total`: value of Int64"),
    ],
    ids=["another type", "narrower", "another kind", "another clock"],
)
def test_checkpoint_is_refused_before_the_start_with_the_field(tmp_path: Path, now: sw.Process, shown: str) -> None:
    open_checkpoint(tmp_path, pipeline(process(total=long())).plan(), partitions=2)
    with pytest.raises(RunError) as caught:
        open_checkpoint(tmp_path, pipeline(now).plan(), partitions=2)
    assert caught.value.code == "CHECKPOINT_STEP_CHANGED"
    assert shown in str(caught.value)


def test_checkpoint_is_refused_when_the_order_changes(tmp_path: Path) -> None:
    open_checkpoint(tmp_path, pipeline(process(total=long())).plan(), partitions=2)
    with pytest.raises(RunError, match="order: arrival -> event_time"):
        open_checkpoint(tmp_path, pipeline(process(total=long()), order="event_time").plan(), partitions=2)


def test_field_that_was_dropped_does_not_come_back_with_its_old_values(tmp_path: Path) -> None:
    both, one = process(total=long(), seen=long()), process(seen=long())
    for own in (both, one, one):
        open_checkpoint(tmp_path, pipeline(own).plan(), partitions=2)
    with pytest.raises(RunError, match="state `total`: dropped -> value of Int64"):
        open_checkpoint(tmp_path, pipeline(both).plan(), partitions=2)
