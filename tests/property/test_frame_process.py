"""A process of frames against its model, and against the process of events that computes the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.plan.streams import Results
from tests.operators.state.bucket_sizes import tiny_buckets
from tests.property.accounts import Counted
from tests.property.frame_model import FrameModel, Shown
from tests.property.process_model import END
from tests.property.test_process import T0, Batch, batches, send

ROWS = "id long, key string, ts long, op string, n long"
Frames = tuple[pl.DataFrame, pl.DataFrame]


class Totals(sw.FrameProcess):
    """Adds up what comes; what an event is called may make it fail, or clear the state of its key."""

    state = "total long, seen long"
    ttl: Any = "20ms"

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        if (rows["op"] == "fail").any():
            raise ValueError("on purpose")
        new = rows.group_by("key", maintain_order=True).agg(
            ids=pl.col("id").cast(pl.String).str.join(" "), sum=pl.col("n").sum(), rows=pl.len(), op=pl.col("op").last()
        )
        known = new.join(state, on="key", how="left", nulls_equal=True, maintain_order="left")
        made = known.with_columns(
            total=pl.col("sum") + pl.col("total").fill_null(0), seen=pl.col("rows") + pl.col("seen").fill_null(0)
        )
        if (rows["op"] == "mistype").any():
            made = made.with_columns(pl.col("total").cast(pl.String))
        return made, made.filter(pl.col("op") != "clear")


class Lasting(Totals):
    """Forgets nothing."""

    ttl = sw.FOREVER


@dataclass(frozen=True)
class Setup:
    """One process of frames."""

    order: Any
    forgets: bool = True
    is_crowded: bool = False

    def pipeline(
        self, process: sw.Process | sw.FrameProcess | None = None, output: str = "ids string, total long, seen long"
    ) -> tuple[sw.Pipeline, Results]:
        events = sw.stream("events", sw.testing.rows_source(ROWS)).event_time("ts", out_of_orderness="10ms")
        process = process or (Totals() if self.forgets else Lasting())
        results = events.key_by("key").process(process, output=output, order=self.order)
        ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
        ends += [results.late.to(sw.sinks.memory())] if self.order == "event_time" else []
        return sw.Pipeline("framed", *ends, key_groups=4), results


SETUPS = st.builds(Setup, st.sampled_from(["arrival", "event_time"]), st.booleans(), st.booleans())


@dataclass
class Run:
    """A stream that went through a process to its end, and what the model makes of it."""

    harness: Counted
    results: Results
    model: FrameModel


def run(setup: Setup, stream: list[Batch], pipeline: tuple[sw.Pipeline, Results] | None = None) -> Run:
    built, results = pipeline or setup.pipeline()
    harness = Counted(built, now=T0)
    model = FrameModel(20 if setup.forgets else None, setup.order == "event_time")
    with tiny_buckets() if setup.is_crowded else nullcontext():
        for batch in stream:
            if batch.restart:
                harness.restart()
            harness.now_ms += batch.later_ms
            send(harness, batch)
            model.batch(list(batch.events), harness.watermark["events"])
            harness.run_batch()
        model.batch([], harness.watermark["events"])
        harness.finish()
    model.batch([], END)
    return Run(harness, results, model)


def by_key(rows: list[Shown]) -> list[Shown]:
    return sorted(rows, key=lambda row: str(row.key))


@given(SETUPS, batches())
def test_every_batch_of_a_key_sees_the_state_that_the_model_sees(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    found = done.harness.output(done.results).with_columns(pl.col("event_time").dt.epoch("ms"))
    assert by_key([Shown(*row) for row in found.rows()]) == by_key(done.model.shown)


@given(SETUPS, batches())
def test_every_event_is_part_of_a_result_a_dead_letter_or_late(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    dead = done.harness.output("events.dead_letters")
    failed = [int(id_) for id_ in dead["payload"].cast(pl.String).str.json_path_match("$.id")]
    late = done.harness.output(done.results.late)["id"].to_list() if setup.order == "event_time" else []
    assert sorted(failed) == sorted(done.model.failed)
    assert sorted(late) == sorted(done.model.late)
    shown = [int(id_) for ids in done.harness.output(done.results)["ids"] for id_ in ids.split()]
    assert sorted([*shown, *failed, *late]) == sorted(event.id for batch in stream for event in batch.events)
    counts = done.harness.counts.get("events.process", Counter())
    assert [counts[what] for what in ("on_time", "dead", "late")] == [len(shown), len(failed), len(late)]


@given(SETUPS, batches())
def test_nothing_is_left_at_the_end_but_what_is_kept_forever(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    if setup.forgets:
        assert done.harness.pieces == 0
        assert not any(done.harness.engine.state.values())
    else:
        held = done.harness.last.state.get("events.process", Counter())
        assert held["rows"] == len(done.model.keys)


class Running(sw.FrameProcess):
    """Shows after each event the total of its key."""

    state = "total long, seen long"
    ttl: Any = "1h"

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        known = rows.join(state, on="key", how="left", nulls_equal=True, maintain_order="left")
        made = known.with_columns(
            total=pl.col("n").cum_sum().over("key") + pl.col("total").fill_null(0),
            seen=pl.int_range(1, pl.len() + 1).over("key") + pl.col("seen").fill_null(0),
        )
        return made, made.unique("key", keep="last")


class RunningByEvent(sw.Process):
    """The same, event by event."""

    total = sw.value_state("long", ttl="1h")
    seen = sw.value_state("long", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        self.total.set((self.total.get() or 0) + event["n"])
        self.seen.set((self.seen.get() or 0) + 1)
        yield {"id": event["id"], "total": self.total.get(), "seen": self.seen.get()}


@given(SETUPS, batches())
def test_frames_and_single_events_give_the_same_results(setup: Setup, stream: list[Batch]) -> None:
    output = "id long, total long, seen long"
    frames, events = (run(setup, stream, setup.pipeline(process, output)) for process in (Running(), RunningByEvent()))
    found, expected = (done.harness.output(done.results) for done in (frames, events))
    assert_frame_equal(found.sort("id"), expected.sort("id"))
    for end in ("events.dead_letters", *(["events.process.late"] if setup.order == "event_time" else [])):
        assert_frame_equal(frames.harness.output(end), events.harness.output(end), check_row_order=False)
    assert frames.harness.pieces == events.harness.pieces == 0
