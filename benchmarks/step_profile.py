"""Where a batch's time goes, step by step: Spark's account, the driver's, and the stages on the executors."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from pyspark.sql import SparkSession
from rich.table import Table

from benchmarks.compare import Outcome
from benchmarks.sides import BatchTime

_TREE: Final = (
    ("latestOffset", "list new files"),
    ("getBatch", "make the batch's input"),
    ("walCommit", "write the offset log"),
    ("queryPlanning", "plan"),
    ("addBatch", "run the batch"),
    ("front", "  FRONT (ours)"),
    ("keyed", "  KEYED (ours)"),
    ("stage.write", "    stages that read input"),
    ("stage.read", "    stages with state"),
    ("stage.other", "    other stages"),
    ("sinks", "  sinks (ours)"),
    ("clock", "  clock (ours)"),
    ("commitOffsets", "write the commit log"),
    ("commitBatch", "tell the sources"),
    ("triggerExecution", "all of it"),
    ("cpu.workers", "CPU time of Python workers"),
    ("cpu.driver", "CPU time of the JVM and the driver"),
    ("stage.tasks", "time of all tasks"),
    ("stage.gc", "  of it JVM garbage collection"),
    ("jobs", "Spark jobs"),
)


def profile_table(spark: SparkSession, outcome: Outcome) -> Table:
    """Return each of our warm batches by step, and the medians of both sides, in milliseconds."""
    ours = [{**_steps(spark, batch), **cpu} for batch, cpu in zip(outcome.ours, outcome.ours_cpu_ms, strict=True)]
    sparks = [{**_steps(spark, batch), **cpu} for batch, cpu in zip(outcome.sparks, outcome.sparks_cpu_ms, strict=True)]
    table = Table(title=f"{outcome.case.name}: milliseconds a batch, by step", title_justify="left")
    table.add_column("step", no_wrap=True)
    for name in ("ours", "Spark's"):
        table.add_column(f"{name}, median", justify="right", style="bold")
    shown = outcome.ours[:8]
    for batch in shown:
        table.add_column(f"ours {batch.batch}", justify="right", style="dim")
    for step, words in _TREE:
        values = [steps.get(step) for steps in ours]
        if not any(value is not None for value in values):
            continue
        row = [_median(ours, step), _median(sparks, step), *("" if v is None else f"{v:,.0f}" for v in values)]
        table.add_row(words, *row[: 2 + len(shown)])
    return table


def _median(batches: list[dict[str, float]], step: str) -> str:
    values = [steps[step] for steps in batches if step in steps]
    return f"{median(values):,.0f}" if values else ""


def _steps(spark: SparkSession, batch: BatchTime) -> dict[str, float]:
    steps: dict[str, float] = dict(batch.steps_ms)
    if batch.report is not None:
        steps |= {name: seconds * 1_000 for name, seconds in batch.report.timings_s.items()}
    return steps | _stages(spark, batch)


def _stages(spark: SparkSession, batch: BatchTime) -> dict[str, float]:
    """Return what Spark's status store says of the batch's stages: wall time by kind, and executor time."""
    store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001  the only way to Spark's own figures
    jobs = store.jobsList(None)
    found: dict[str, float] = {}
    for job in (jobs.apply(place) for place in range(jobs.size())):
        if not _belongs(job, batch):
            continue
        found["jobs"] = found.get("jobs", 0) + 1
        ids = job.stageIds()
        for stage in (store.lastStageAttempt(ids.apply(place)) for place in range(ids.size())):
            if not stage.completionTime().isDefined():
                continue  # skipped: its shuffle files were there already
            took = stage.completionTime().get().getTime() - stage.submissionTime().get().getTime()
            kind = "write" if stage.shuffleWriteBytes() else "read" if stage.shuffleReadBytes() else "other"
            for name, value in ((kind, took), ("tasks", stage.executorRunTime()), ("gc", stage.jvmGcTime())):
                found[f"stage.{name}"] = found.get(f"stage.{name}", 0) + value
    return found


def _belongs(job: Any, batch: BatchTime) -> bool:  # noqa: ANN401  Spark's JobData, through Py4J
    group, description = job.jobGroup(), job.description()
    if not group.isDefined() or group.get() != batch.query or not description.isDefined():
        return False
    return f"batch = {batch.batch}" in description.get().splitlines()
