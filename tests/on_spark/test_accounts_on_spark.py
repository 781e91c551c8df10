"""The property tests in small, on Spark: steps of all kinds over one stream, in any batches, with a crash amid them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from slackwater.windows import GlobalWindow, SessionWindow
from tests.on_spark.jobs import WRITTEN_S, CrashError, crash_after
from tests.property.accounts import Run, check_accounts, check_standing
from tests.property.model import Model
from tests.property.streams import T0, Batch, Record, Setup, batches, setups, stream_of

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings(r"ignore:\[DEAD_LETTERS_MANY\]")]  # a third of the records


class Steps:
    """Several steps over one stream, in one pipeline whose outputs are kept in memory."""

    def __init__(self, setups: Sequence[Setup], log: Path) -> None:
        self.setups = setups
        self.events = stream_of(sw.sources.log(log, max_files_per_batch=1))
        self.results = [setup.results(self.events, f"step_{at}") for at, setup in enumerate(setups)]
        self.shown = [sw.sinks.memory() for _ in setups]
        self.late = [sw.sinks.memory() for _ in setups]
        self.dead = sw.sinks.memory()
        ends = [
            end
            for results, shown, late in zip(self.results, self.shown, self.late, strict=True)
            for end in (results.to(shown), results.late.to(late))
        ]
        self.pipeline = sw.Pipeline("accounts", *ends, self.events.dead_letters.to(self.dead), key_groups=4)

    def outcome(self, at: int, cuts: Sequence[Sequence[Record]], reports: dict[int, BatchReport]) -> Run:
        """Return what became of one step, beside the model of it."""
        model = Model(self.setups[at])
        for batch, records in enumerate(cuts):
            good = [record for record in records if record.fate == "good"]
            model.batch(good, reports[batch].clock.streams["events"].watermark_ms)
        model.finish()
        return Run(
            setup=self.setups[at],
            model=model,
            results=self.shown[at].rows(),
            late=self.late[at].rows(),
            dead=self.dead.rows(),
        )


def write(log: Path, cuts: Sequence[Sequence[Record]]) -> None:
    """Write a file for each batch; its name is the offset of its first record."""
    (log / "0").mkdir(parents=True)
    offset = 0
    for number, records in enumerate(cuts):
        path = log / "0" / f"{offset:020d}.jsonl"
        path.write_bytes(b"".join(record.payload + b"\n" for record in records))
        os.utime(path, (WRITTEN_S + number, WRITTEN_S + number))
        offset += len(records)


def started(spark: SparkSession, pipeline: sw.Pipeline, checkpoint: Path, nows_ms: Sequence[int]) -> Job:
    """Return the job, with processing time in our hands: it is what `nows_ms` says of each batch."""
    job = make_job(
        pipeline.plan(),
        RunOptions(spark=spark, checkpoint=checkpoint, bounded=True, partitions=2, trigger="0s"),
        clock_hook=lambda clock: replace(clock, now_ms=nows_ms[min(clock.batch, len(nows_ms) - 1)]),
    )
    clock = job.checkpoint.next_clock()
    job.checkpoint.write_clock(replace(clock, now_ms=nows_ms[clock.batch]))
    return job


ANY = given(st.lists(setups(), min_size=5, max_size=5), batches(most=5), st.integers(0, 4))


@settings(max_examples=1, deadline=None, database=None, phases=[Phase.generate])
@ANY
def test_every_record_ends_in_exactly_one_account_on_spark(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, chosen: list[Setup], stream: list[Batch], crash: int
) -> None:
    check(spark, tmp_path_factory.mktemp("accounts"), chosen, stream, crash)


@pytest.mark.long
@settings(max_examples=6, deadline=None, database=None, phases=[Phase.generate])
@ANY
def test_every_record_ends_in_exactly_one_account_on_spark_however_often(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, chosen: list[Setup], stream: list[Batch], crash: int
) -> None:
    check(spark, tmp_path_factory.mktemp("accounts"), chosen, stream, crash)


def check(spark: SparkSession, folder: Path, chosen: list[Setup], stream: list[Batch], crash: int) -> None:
    """Run five steps over a stream, with a crash, and compare each with its model."""
    filled = [batch for batch in stream if batch.records] or [Batch((Record(0, "a", T0, "good", "0"),))]
    cuts = [batch.records for batch in filled]
    nows_ms = [T0 + sum(batch.later_ms for batch in filled[: at + 1]) for at in range(len(filled))]
    write(folder / "log", cuts)
    steps = Steps(chosen, folder / "log")

    first = started(spark, steps.pipeline, folder / "checkpoint", nows_ms)
    first.options = replace(first.options, on_batch=crash_after(crash % len(cuts)))
    with pytest.raises(CrashError):
        first.run()
    second = started(spark, steps.pipeline, folder / "checkpoint", nows_ms)
    second.run()

    reports = {report.batch: report for report in [*first.reports, *second.reports]}
    for at, setup in enumerate(chosen):
        done = steps.outcome(at, cuts, reports)
        check_accounts(done, [record for records in cuts for record in records])
        is_cut = isinstance(setup.window, SessionWindow) and setup.window.max_length_ms is not None
        if not isinstance(setup.window, GlobalWindow) and not is_cut:
            assert sorted(done.late["id"].to_list()) == sorted(done.model.late)
            if setup.shows_all:
                check_standing(done)
