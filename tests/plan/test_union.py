"""A union: several streams as one, each with its own time, partitions and dead letters."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.plan.streams import Stream

DDL = "k string, ts long, v long"


def source(name: str, ddl: str = DDL) -> Stream:
    return sw.stream(name, sw.testing.rows_source(ddl)).event_time("ts")


def row(k: str, ts: int, v: int = 1) -> dict[str, Any]:
    return {"k": k, "ts": ts, "v": v}


def counted(united: Stream, *sources: Stream) -> tuple[sw.Pipeline, Any]:
    counts = united.key_by("k").window(sw.tumbling("10ms")).aggregate(n=sw.count(), total=sw.sum("v"))
    letters = [each.dead_letters.to(sw.sinks.memory()) for each in sources]
    return sw.Pipeline("united", counts.to(sw.sinks.memory()), counts.late.to(sw.sinks.memory()), *letters), counts


def test_rows_of_all_streams_meet_in_one_window() -> None:
    a, b = source("a"), source("b")
    pipeline, counts = counted(a.union(b), a, b)
    done = sw.testing.run(pipeline, {"a": [row("x", 1), row("x", 2)], "b": [row("x", 3, 5), row("y", 4)]})
    assert done[counts].sort("k").select("k", "n", "total").rows() == [("x", 3, 7), ("y", 1, 1)]


def test_the_slowest_stream_holds_the_watermark() -> None:
    a, b = source("a"), source("b")
    pipeline, counts = counted(a.union(b), a, b)
    harness = sw.testing.Harness(pipeline)
    harness.send("a", [row("x", 1)]).send("b", [row("x", 2)]).run_batch()
    harness.send("a", [row("x", 100)]).run_batch()
    harness.run_batch()
    assert harness.output(counts).is_empty()
    harness.send("b", [row("x", 50)]).run_batch()
    harness.run_batch()
    assert harness.output(counts)["n"].to_list() == [2]


def test_columns_may_come_in_another_order() -> None:
    a, b = source("a"), source("b", "v long, k string, ts long")
    pipeline, counts = counted(a.union(b), a, b)
    done = sw.testing.run(pipeline, {"a": [row("x", 1)], "b": [row("x", 2, 3)]})
    assert done[counts].select("k", "n", "total").rows() == [("x", 2, 4)]


def test_rows_that_fail_after_the_union_are_dead_letters_of_their_own_stream() -> None:
    a, b = source("a"), source("b")
    pipeline, counts = counted(a.union(b).validate(positive="v > 0"), a, b)
    done = sw.testing.run(pipeline, {"a": [row("x", 1), row("x", 2, -1)], "b": [row("x", 3, -2), row("x", 4, -3)]})
    assert done[counts]["n"].to_list() == [1]
    assert [done[f"{name}.dead_letters"].height for name in ("a", "b")] == [1, 2]


def test_results_and_rows_can_be_united() -> None:
    a, b = source("a"), source("b")
    sums = a.key_by("k").window(sw.tumbling("10ms"), name="sums").aggregate(v=sw.sum("v"))
    united = sums.select("k", "v").union(b.select("k", "v"), name="all")
    totals = united.key_by("k").window(sw.tumbling("100ms"), name="totals").aggregate(total=sw.sum("v"), n=sw.count())
    pipeline = sw.Pipeline(
        "united",
        totals.to(sw.sinks.memory()),
        sums.late.drop(),
        sums.dead_letters.drop(),
        totals.late.drop(),
        a.dead_letters.drop(),
        b.dead_letters.drop(),
    )
    done = sw.testing.run(pipeline, {"a": [row("x", 1), row("x", 2)], "b": [row("x", 3, 10)]})
    assert done[totals].select("k", "total", "n").rows() == [("x", 12, 2)]


def test_rows_of_a_union_can_be_written_as_they_are() -> None:
    a, b = source("a"), source("b")
    united = a.union(b, name="both")
    letters = [each.dead_letters.drop() for each in (a, b)]
    pipeline = sw.Pipeline("p", united.to(sw.sinks.memory()), *letters)
    done = sw.testing.run(pipeline, {"a": [row("x", 1)], "b": [row("y", 2)]})
    assert sorted(done["both.rows"].rows()) == [("x", 1, 1), ("y", 2, 1)]


def test_a_union_of_branches_of_one_stream_has_its_rows_twice() -> None:
    a = source("a")
    pipeline, counts = counted(a.where("v > 0").union(a.where("v > 1")), a)
    done = sw.testing.run(pipeline, {"a": [row("x", 1, 1), row("x", 2, 2)]})
    assert done[counts].select("k", "n", "total").rows() == [("x", 3, 5)]


def test_explain_shows_the_step_once() -> None:
    a, b = source("a"), source("b")
    pipeline, _ = counted(a.union(b), a, b)
    text = pipeline.explain()
    assert text.count("[stage 0]") == 1
    assert "step a.union.window: see above" in text


def test_a_union_without_event_time_in_one_stream_is_refused() -> None:
    a, b = source("a"), sw.stream("b", sw.testing.rows_source(DDL))
    with pytest.raises(DefinitionError, match="EVENT_TIME_MISSING"):
        counted(a.union(b), a, b)


class Picky(sw.Process):
    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  a generator
        if event["v"] < 0:
            raise ValueError("negative")
        ctx.set_timer(ctx.event_time, name="end")
        yield {"v": event["v"]}

    def on_timer(self, when: Any, ctx: sw.Context) -> Any:  # noqa: ANN401  a generator
        if ctx.key == "late":
            raise ValueError("timer")
        return ()


class PickyFrames(sw.FrameProcess):
    state = "n long"
    ttl = "1h"

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: Any) -> tuple[pl.DataFrame, pl.DataFrame]:  # noqa: ANN401
        if (rows["v"] < 0).any():
            raise ValueError("negative")
        return rows.select("k", "v"), state


@pytest.mark.parametrize("order", ["arrival", "event_time"])
@pytest.mark.parametrize("process", [Picky(), PickyFrames()])
def test_an_event_of_a_union_on_which_a_process_fails_is_a_dead_letter_of_its_own_stream(
    order: Any,  # noqa: ANN401  a literal
    process: Any,  # noqa: ANN401  either kind
) -> None:
    a, b = source("a"), source("b")
    shown = a.union(b).key_by("k").process(process, output="v long", order=order)
    late = [shown.late.drop()] if order == "event_time" else []
    letters = [each.dead_letters.to(sw.sinks.memory()) for each in (a, b)]
    harness = sw.testing.Harness(sw.Pipeline("p", shown.to(sw.sinks.memory()), *late, *letters))
    harness.send("a", [row("x", 1)]).send("b", [row("x2", 2), row("y", 3, -1)]).run_batch()
    harness.finish()
    assert sorted(harness.output(shown)["k"]) == ["x", "x2"]
    assert harness.output("a.dead_letters").is_empty()
    [letter] = harness.output("b.dead_letters").rows(named=True)
    place = (letter["source"], letter["partition"], letter["offset"], letter["step"])
    assert place == ("b", "0", 1, "a.union.process")
    assert json.loads(letter["payload"]) == row("y", 3, -1)


def test_a_timer_that_fails_is_a_dead_letter_of_the_first_stream() -> None:
    a, b = source("a"), source("b")
    shown = a.union(b).key_by("k").process(Picky(), output="v long")
    letters = [each.dead_letters.to(sw.sinks.memory()) for each in (a, b)]
    done = sw.testing.run(sw.Pipeline("p", shown.to(sw.sinks.memory()), *letters), {"b": [row("late", 1)]})
    assert done["a.dead_letters"].select("source", "reason").rows() == [("a.union.process", "timer_failed")]
    assert done["b.dead_letters"].is_empty()


def test_results_of_a_step_in_a_union_that_fail_are_dead_letters_of_the_stream_before_it() -> None:
    a, b = source("a"), source("b")
    first = b.key_by("k").process(Passing(), output="ts long, v long", name="first")
    shown = a.union(first.select("k", "ts", "v")).key_by("k").process(Picky(), output="v long")
    letters = [each.dead_letters.to(sw.sinks.memory()) for each in (a, b, first)]
    pipeline = sw.Pipeline("p", shown.to(sw.sinks.memory()), *letters)
    done = sw.testing.run(pipeline, {"a": [row("x", 1)], "b": [row("y", 3, -1)]})
    assert done["b.dead_letters"].select("source", "step").rows() == [("first", "a.union.process")]
    assert done["a.dead_letters"].is_empty()


class Passing(sw.Process):
    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  a generator
        yield {"ts": event["ts"], "v": event["v"]}


def test_a_stream_can_be_united_with_a_part_of_itself() -> None:
    a = source("a")
    pipeline, counts = counted(a.union(a.where("v > 1")), a)
    done = sw.testing.run(pipeline, {"a": [row("x", 1, 1), row("x", 2, 2)]})
    assert done[counts].select("k", "n", "total").rows() == [("x", 3, 5)]


def test_explain_says_that_a_step_reads_a_union_and_that_order_holds_events() -> None:
    a, b = source("a"), source("b")
    shown = a.union(b).key_by("k").process(Passing(), output="ts long, v long", order="event_time")
    letters = [each.dead_letters.drop() for each in (a, b)]
    text = sw.Pipeline("p", shown.to(sw.sinks.memory()), shown.late.drop(), *letters).explain()
    assert "reads     a union of a, b: the slowest watermark decides" in text
    assert "holds     events until the watermark has passed them" in text


def test_explain_says_which_side_of_a_join_is_a_union() -> None:
    a, b, c = source("a"), source("b"), source("c")
    pairs = c.key_by("k").join(a.union(b).key_by("k"), between=("0s", "1s"))
    letters = [each.dead_letters.drop() for each in (a, b, c)]
    text = sw.Pipeline("p", pairs.to(sw.sinks.memory()), pairs.late.drop(), *letters).explain()
    assert text.count("reads") == 1
    assert "reads     right rows are a union of a, b" in text


def test_events_with_equal_times_come_by_partition_then_stream_then_offset() -> None:
    a, b = source("a"), source("b")
    shown = b.union(a).key_by("k").process(Passing(), output="ts long, v long", order="event_time")
    letters = [each.dead_letters.drop() for each in (a, b)]
    harness = sw.testing.Harness(sw.Pipeline("p", shown.to(sw.sinks.memory()), shown.late.drop(), *letters))
    harness.send("b", [row("x", 5, 3), row("x", 5, 4)]).send("b", [row("x", 5, 5)], partition="1")
    harness.send("a", [row("x", 5, 1), row("x", 5, 2)]).send("a", [row("x", 5, 0)], partition="!")
    harness.run_batch()
    harness.finish()
    assert harness.output(shown)["v"].to_list() == [0, 1, 2, 3, 4, 5]
