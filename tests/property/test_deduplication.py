"""Deduplication against its model: every record in exactly one account, whatever the batches and the restarts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from unittest import mock

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.operators.deduplication import seen
from slackwater.operators.deduplication.spec import Keep
from slackwater.plan.streams import Deduplicated, Output, Stream
from slackwater.testing import Harness
from tests.operators.state.bucket_sizes import tiny_buckets
from tests.property.deduplication_model import END, Model
from tests.property.streams import T0, Batch, Record, batches, send, stream_of

KEEPS = ("first", "first_by_time", "last_by_time")


@dataclass(frozen=True)
class Setup:
    """One deduplication."""

    keep: Keep
    within_ms: int | None
    late: str = "output"
    is_crowded: bool = False

    def pipeline(self) -> tuple[sw.Pipeline, Deduplicated]:
        events = stream_of(sw.sources.log("nowhere"))
        results = events.key_by("key").deduplicate(
            within=sw.FOREVER if self.within_ms is None else f"{self.within_ms}ms",
            keep=self.keep,
            late=self.late,  # type: ignore[arg-type]  # drawn
        )
        ends = [results.to(sw.sinks.memory()), results.duplicates.to(sw.sinks.memory()), events.dead_letters.drop()]
        ends += [results.late.to(sw.sinks.memory())] if self.late == "output" else []
        return sw.Pipeline("deduplicated", *ends, key_groups=4), results


@contextmanager
def sized(setup: Setup) -> Iterator[None]:
    """Make pieces and buckets so small that they are split, and merged, by a few rows."""
    crowd = mock.patch.multiple(seen, COMPACT_AT=2, _MOST_KEYS=2) if setup.is_crowded else nullcontext()
    with crowd, tiny_buckets() if setup.is_crowded else nullcontext():
        yield


SETUPS = st.builds(
    Setup,
    keep=st.sampled_from(KEEPS),
    within_ms=st.sampled_from([0, 7, 40, None]),
    late=st.sampled_from(["output", "output", "process"]),
    is_crowded=st.booleans(),
)


@dataclass
class Run:
    """A stream that went through a deduplication to its end, and what the model makes of it."""

    harness: Harness
    results: Deduplicated
    model: Model


def run(setup: Setup, stream: list[Batch]) -> Run:
    pipeline, results = setup.pipeline()
    harness = Harness(pipeline, now=T0)
    model = Model(setup.keep, setup.within_ms, setup.late == "process")
    with sized(setup):
        for batch in stream:
            if batch.restart:
                harness.restart()
            send(harness, batch)
            model.advance(harness.watermark["events"])
            for record in sorted(batch.records, key=lambda record: record.partition):
                if record.fate == "good":
                    model.take(record)
            harness.run_batch()
        harness.finish()
    model.advance(END)
    return Run(harness, results, model)


def ids(records: list[Record]) -> list[int]:
    return sorted(record.id for record in records)


def shown(results: pl.DataFrame, key: str | None) -> list[tuple[int, bool]]:
    of_key = results.filter(pl.col("key").eq_missing(pl.lit(key)))
    back = of_key["is_retraction"] if "is_retraction" in of_key.columns else [False] * of_key.height
    return list(zip(of_key["id"], back, strict=True))


@given(SETUPS, batches())
def test_each_key_shows_and_withdraws_the_rows_that_the_model_does(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    found = done.harness.output(done.results)
    for key in ("a", "b", None):
        expected = [(record.id, back) for record, back in done.model.results if record.key == key]
        assert shown(found, key) == expected


@given(SETUPS, batches())
def test_every_record_is_a_result_a_duplicate_or_late(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    assert sorted(done.harness.output(done.results.duplicates)["id"].to_list()) == ids(done.model.duplicates)
    late = done.harness.output(done.results.late)["id"].to_list() if setup.late == "output" else []
    assert sorted(late) == ids(done.model.late)
    kept = {record.id for record, _ in done.model.results}
    every = [*kept, *ids(done.model.duplicates), *ids(done.model.late)]
    assert sorted(every) == sorted(r.id for batch in stream for r in batch.records if r.fate == "good")


@given(SETUPS, batches())
def test_results_and_duplicates_have_the_event_time_of_their_row(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    for output in (done.results, done.results.duplicates):
        found = done.harness.output(output)
        assert found["event_time"].dt.epoch("ms").to_list() == found["ts"].to_list()


@given(SETUPS.filter(lambda setup: setup.within_ms is not None), batches())
def test_nothing_is_remembered_after_the_end(setup: Setup, stream: list[Batch]) -> None:
    harness = run(setup, stream).harness
    assert harness.pieces == 0
    assert not any(harness.engine.state.values())


@given(st.sampled_from(["first", "first_by_time"]), st.sampled_from([0, 7, 40]), batches())
def test_a_next_step_finds_no_kept_row_late(keep: Keep, within_ms: int, stream: list[Batch]) -> None:
    events = stream_of(sw.sources.log("nowhere"))
    kept = events.key_by("key").deduplicate(within=f"{within_ms}ms", keep=keep)
    counted = kept.key_by("key").window(sw.tumbling("20ms"), name="counted").aggregate(n=sw.count())
    again = kept.duplicates.key_by("key").window(sw.tumbling("20ms"), name="again").aggregate(n=sw.count())
    ends: list[Stream | Output] = [counted, counted.late, again, again.late, kept, kept.late, events.dead_letters]
    harness = Harness(sw.Pipeline("chain", *(end.to(sw.sinks.memory()) for end in ends), key_groups=4), now=T0)
    for batch in stream:
        send(harness, batch)
        harness.run_batch()
    harness.finish()
    assert harness.output(counted.late).is_empty()
    assert harness.output(again.late).is_empty()
    assert harness.output(counted)["n"].sum() == harness.output(kept).height
