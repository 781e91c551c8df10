"""The driver of a job on a cluster, which loses an executor in mid-batch. Run as `driver.py MASTER LOG OUT`."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl
import psutil
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.connectors.sink import Change, Mark, Sink, SinkBatch, SinkWriter, Slot
from slackwater.engine.outputs import evaluated as outputs
from slackwater.spark.options import RunOptions
from slackwater.spark.session import spark_session
from slackwater.spark.start import make_job

KILLED_IN: Final = 2
"""The batch in whose middle an executor dies: the first one with results."""


def executors_with_blocks(spark: SparkSession) -> dict[str, int]:
    """Return how many cached blocks each executor holds, as the driver knows it."""
    held: Counter[str] = Counter()
    store = spark.sparkContext._jsc.sc().statusStore()
    cached = store.rddList(True)  # noqa: FBT003  Scala's, which takes no names
    for number in range(cached.size()):
        partitions = cached.apply(number).partitions().get()
        for at in range(partitions.size()):
            places = partitions.apply(at).executors()
            held.update(places.apply(place) for place in range(places.size()))
    return dict(held)


def process_of(executor: str, spark: SparkSession) -> int:
    """Return the process id of one of this driver's executors, and of no other cluster's."""
    port = spark.sparkContext.getConf().get("spark.driver.port")
    for process in psutil.process_iter(["cmdline"]):
        said = process.info["cmdline"] or []
        is_executor = "org.apache.spark.executor.CoarseGrainedExecutorBackend" in said
        is_ours = is_executor and any(re.fullmatch(rf"spark://CoarseGrainedScheduler@.*:{port}", part) for part in said)
        if is_ours and said[said.index("--executor-id") + 1] == executor:
            return int(process.pid)
    message = f"executor {executor} has no process"
    raise AssertionError(message)


@dataclass(kw_only=True)
class _Writer(SinkWriter):
    spark: SparkSession | None = None
    kept: list[pl.DataFrame] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Kill an executor, then ask for the rows: what it held must be computed anew."""
        if batch.batch == KILLED_IN and self.spark is not None:
            held = executors_with_blocks(self.spark)
            victim = max(held, key=lambda executor: held[executor])
            os.kill(process_of(victim, self.spark), signal.SIGKILL)
            self.killed.append(f"executor {victim} with {held[victim]} blocks and {batch.rows} rows wanted")
        self.kept += list(batch.frames())


@dataclass(frozen=True, kw_only=True, eq=False)
class KillingSink(Sink):
    """A sink that takes an executor down before it takes its rows."""

    takes: frozenset[Change] = frozenset({"append", "update"})
    writer: _Writer = field(default_factory=_Writer)

    def open(self, slot: Slot) -> SinkWriter:
        """Return the one writer."""
        return self.writer

    def __str__(self) -> str:
        return "killing"

    def __reduce__(self) -> tuple[type[KillingSink], tuple[()]]:
        return (KillingSink, ())


def main() -> None:
    """Run the job and write its results."""
    master, log, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    # No row travels with the statistics: all of them stay in the executors' cached blocks.
    outputs.INLINE_BYTES = 0  # type: ignore[misc]
    conf = {
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "600m",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    }
    spark = spark_session(master=master, name="cluster", conf=conf)
    events = sw.stream("events", sw.sources.log(log, max_files_per_batch=2))
    events = events.decode(sw.formats.json("id long, k string, ts long, v double")).event_time("ts")
    windowed = events.key_by("k").window(sw.tumbling("1m"))
    results = windowed.aggregate(n=sw.count(), total=sw.sum("v"), ids=sw.collect_list("id"))
    sink = KillingSink(writer=_Writer(spark=spark))
    pipeline = sw.Pipeline(
        "cluster",
        results.to(sink),
        results.late.to(sw.sinks.files(out / "late")),
        events.dead_letters.drop(),
        key_groups=4,
    )
    job = make_job(pipeline.plan(), RunOptions(spark=spark, checkpoint=out / "checkpoint", bounded=True, partitions=2))
    job.run()
    pl.concat(sink.writer.kept).write_parquet(out / "results.parquet")
    (out / "killed").write_text("\n".join(sink.writer.killed))
    spark.stop()


if __name__ == "__main__":
    main()
