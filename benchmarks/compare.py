"""One case, measured: a batch of Slackwater's, the same batch of Spark's with each state store, and so on in turn.

A machine's speed drifts by a factor of two within minutes; alternating makes both sides drift alike,
and medians of warm batches forget the outliers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import polars as pl
from pyspark.sql import SparkSession

import slackwater as sw
from benchmarks.cases import Case, small
from benchmarks.data import avro_schema, batches
from benchmarks.kafka_events import kafka_frame, kafka_source
from benchmarks.processes import CpuTime, WorkerMemory
from benchmarks.queries import frame_of, log_of, our_job, spark_query
from benchmarks.sides import BatchTime, OurSide, SparkSide, put
from benchmarks.workloads import Counts, Rivalled

DATA: Final = Path("build/bench-data")
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a case came to; only warm batches are kept."""

    case: Case
    ours: list[BatchTime]
    rivals: dict[str, list[BatchTime]]
    """Of each rival; the first is the one with the same state store."""
    peak_worker_mb: float
    ours_cpu_ms: list[dict[str, float]]
    sparks_cpu_ms: list[dict[str, float]]
    """Of the first rival."""

    @property
    def sparks(self) -> list[BatchTime]:
        """The batches of the first rival."""
        return next(iter(self.rivals.values()))

    @property
    def ours_rows_per_s(self) -> float:
        """Rows a second at Slackwater's median batch time."""
        return self.case.events.rows_per_batch / median(batch.seconds for batch in self.ours)

    @property
    def rivals_rows_per_s(self) -> dict[str, float]:
        """Rows a second at each rival's median batch time."""
        return {
            name: self.case.events.rows_per_batch / median(batch.seconds for batch in batches)
            for name, batches in self.rivals.items()
        }

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as fast as each rival Slackwater is."""
        return {name: self.ours_rows_per_s / theirs for name, theirs in self.rivals_rows_per_s.items()}

    @property
    def ratio(self) -> float:
        """The ratio that has a floor: with the same state store on both sides."""
        return next(iter(self.ratios.values()))


def compare(spark: SparkSession, case: Case, *, measured: int, home: Path, say: Say) -> Outcome:
    """Run all sides in turn over the same batches, and check that they give the same results."""
    total = measured * case.batches_factor
    warm_up = case.small_batches + case.warm_up
    say("writing events (once; they are kept)")
    our_files = _files(case, total)
    rival_files = our_files if case.rival == "spark" else _files(in_json(case), total)
    shutil.rmtree(home, ignore_errors=True)
    ours = _our_side(spark, case, home)
    rivals = _rivals(spark, case, home)
    memory, cpu = WorkerMemory(), CpuTime()
    our_cpu, rival_cpu = [], []
    try:
        for number, (files, other_files) in enumerate(zip(our_files, rival_files, strict=True), 1 - warm_up):
            for file in {*files, *other_files}:
                file.read_bytes()  # what a stream reads was written just now; cold, the side that goes first would pay
            rows = (case.events if number > -case.warm_up else small(case.events)).rows_per_batch
            cpu.lap()
            with memory.sampled():
                our_seconds = ours.batch(files, rows).seconds
            our_cpu.append(cpu.lap())
            seconds = {}
            for name, rival in rivals.items():
                seconds[name] = rival.batch(other_files, rows).seconds
                if len(seconds) == 1:
                    rival_cpu.append(cpu.lap())
            theirs = ", ".join(f"{name} {took:.2f} s" for name, took in seconds.items())
            which = f"batch {number} of {total}" if number > 0 else f"warm-up {number + warm_up} of {warm_up}"
            say(f"{which}: ours {our_seconds:.2f} s (without commit), {theirs}")
        our_times, rival_times = ours.finish(), {name: rival.finish() for name, rival in rivals.items()}
    finally:
        for side in (ours, *rivals.values()):
            side.close()
    if isinstance(case.workload, Rivalled) and case.rival != "ours-window":
        _check_results(home, rivals, case.workload)
    shutil.rmtree(home)
    warm = slice(warm_up, None)
    return Outcome(
        case=case,
        ours=our_times[warm],
        rivals={name: times[warm] for name, times in rival_times.items()},
        peak_worker_mb=memory.peak_mb,
        ours_cpu_ms=our_cpu[warm],
        sparks_cpu_ms=rival_cpu[warm],
    )


def in_json(case: Case) -> Case:
    """Return the same case with its events in JSON."""
    return replace(case, name=f"{case.name}-rival", events=replace(case.events, format="json"))


def _files(case: Case, total: int) -> list[list[Path]]:
    small_ones = batches(small(case.events), DATA / f"{data_name(case)}-small", case.small_batches)
    return [*small_ones, *batches(case.events, DATA / data_name(case), case.warm_up + total)]


def data_name(case: Case) -> str:
    """Return the folder of the case's events; cases with the same events share it."""
    events = case.events
    return f"{events.format}-{events.keys}-{events.rows_per_batch}" + ("-visits" if events.visitors else "")


def _our_side(spark: SparkSession, case: Case, home: Path) -> OurSide:
    name = f"ours-{case.name}"
    if case.source == "kafka":
        source, deliver = kafka_source(case.events)
        form = sw.formats.avro(schema=avro_schema()) if case.events.format == "avro" else None
        return OurSide(job=our_job(spark, source, case.workload, name=name, home=home, form=form), deliver=deliver)
    folder = home / "ours-in"
    folder.mkdir(parents=True)
    of_frame = case.source == "dataframe"
    source = sw.sources.dataframe(frame_of(spark, case.events, folder)) if of_frame else log_of(case.events, folder)
    return OurSide(job=our_job(spark, source, case.workload, name=name, home=home), deliver=partial(put, folder=folder))


def _rivals(spark: SparkSession, case: Case, home: Path) -> Mapping[str, OurSide | SparkSide]:
    """Return what a case is compared with; each has a folder of its own name."""
    if case.rival == "ours-json":
        return {"ours, JSON": _our_side(spark, in_json(case), home / "ours, JSON")}
    if case.rival == "ours-window":
        counts = replace(case, name=f"{case.name}-rival", workload=Counts())
        return {"ours, counts per minute": _our_side(spark, counts, home / "ours, counts per minute")}
    assert isinstance(case.workload, Rivalled)
    return {store: _spark_side(spark, case, home / store, store) for store in case.workload.stores}


def _spark_side(spark: SparkSession, case: Case, home: Path, store: str) -> SparkSide:
    if case.source == "kafka":
        events, deliver = kafka_frame(spark, case.events)
    else:
        folder = home / "spark-in"
        folder.mkdir(parents=True)
        events, deliver = frame_of(spark, case.events, folder), partial(put, folder=folder)
    query = spark_query(spark, case, events, home=home, store=store)
    assert isinstance(case.workload, Rivalled)
    return SparkSide(query=query, deliver=deliver, checkpoint=home / "spark-checkpoint", reads=case.workload.reads)


def _check_results(home: Path, rivals: Iterable[str], workload: Rivalled) -> None:
    """Fail if a rival shows a result that Slackwater does not show."""
    columns = [name for name in workload.columns if name != "total"]
    results = Path("ours-out") / "results" / "batch-*" / "*.parquet"
    ours = pl.read_parquet(home / results).select(workload.columns)
    for name in rivals:
        of_spark = home / name / "spark-out"
        other = of_spark / "*.parquet" if of_spark.exists() else home / name / results
        theirs = pl.read_parquet(other).select(workload.columns)
        theirs = theirs.with_columns(pl.col(column).cast(ours.schema[column]) for column in columns)
        wrong = theirs.join(ours, on=columns, how="anti", nulls_equal=True)
        if "total" in workload.columns:
            both = theirs.join(ours, on=columns, how="inner", nulls_equal=True, suffix="_ours")
            far = both.filter((pl.col("total") - pl.col("total_ours")).abs() >= 1e-6)
            wrong = pl.concat([wrong, far.select(workload.columns)])
        if wrong.height or theirs.is_empty():
            message = f"{wrong.height} of {theirs.height} results ({name}) differ from Slackwater's: {wrong.head(5)}"
            raise RuntimeError(message)
