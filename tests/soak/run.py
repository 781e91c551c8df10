"""The soak test: thousands of tiny batches, after which nothing that a job holds may have grown.

    python -m tests.soak.run [--batches 2000]

One job reads a log that gets a file per batch, fires a window per batch and writes files, as fast as it can. Prints a
table of what driver, JVM and Python workers hold, and of the files in the checkpoint and in the sink's folder, and then
what has grown; the exit code is 0 only if nothing has.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from pyspark.sql import SparkSession

import slackwater as sw
from benchmarks.processes import is_worker
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.session import spark_session
from slackwater.spark.start import make_job
from tests.on_spark.jobs import MINUTE, WRITTEN_S, record, stream, write_file

PROCESSES: Final = ("driver", "JVM", "workers")
_SAMPLES: Final = 40
_KEYS: Final = ("a", "b", "c", "d")
_CONF: Final = {
    "spark.ui.enabled": "false",
    # All of the heap is there from the start: what the JVM's memory grows by is then outside of the heap.
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-Xms1g -XX:+AlwaysPreTouch",
    # Spark keeps a compacted source log for ten minutes, longer than this test runs.
    "spark.sql.streaming.fileSource.log.cleanupDelay": "20s",
}


@dataclass(frozen=True, kw_only=True)
class _Held:
    """What one process holds."""

    who: str
    descriptors: int
    half_closed: int
    threads: int
    memory: int

    @classmethod
    def by(cls, process: psutil.Process) -> _Held | None:
        """Look at a process; None if it has ended, as the JVM's short-lived ones do, and so holds nothing."""
        try:
            who = "JVM" if process.name() == "java" else "workers" if is_worker(process) else ""
            connections = process.net_connections("tcp")
            return cls(
                who="driver" if process.pid == os.getpid() else who,
                descriptors=process.num_fds(),
                half_closed=sum(connection.status == psutil.CONN_CLOSE_WAIT for connection in connections),
                threads=process.num_threads(),
                memory=process.memory_info().rss,
            )
        except psutil.NoSuchProcess:
            return None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a job holds after a batch; per process where there is one of each."""

    batch: int
    descriptors: tuple[int, ...]
    half_closed: int
    """Connections whose other end is gone (CLOSE_WAIT), over all processes."""
    threads: tuple[int, ...]
    memory_mb: tuple[int, ...]
    heap_mb: int
    """What is alive in the JVM's heap, after a collection."""
    checkpoint_files: int
    sink_files: int

    @classmethod
    def taken(cls, batch: int, spark: SparkSession, checkpoint: Path, sink: Path) -> Figures:
        """Look at this process, which is the driver, at its JVM and its Python workers, and at the folders."""
        java: Any = spark._jvm.java.lang  # type: ignore[union-attr]
        java.System.gc()
        heap = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
        own = psutil.Process(os.getpid())
        held = [_Held.by(process) for process in (own, *own.children(recursive=True))]
        groups = [[each for each in held if each is not None and each.who == who] for who in PROCESSES]
        return cls(
            batch=batch,
            descriptors=tuple(sum(each.descriptors for each in group) for group in groups),
            half_closed=sum(each.half_closed for group in groups for each in group),
            threads=tuple(sum(each.threads for each in group) for group in groups),
            memory_mb=tuple(sum(each.memory for each in group) >> 20 for group in groups),
            heap_mb=heap >> 20,
            checkpoint_files=_files(checkpoint),
            sink_files=_files(sink),
        )


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much larger a figure may be in the last quarter of a run than in the second, which is warm."""

    what: str
    of: Callable[[Figures], int]
    more: int
    share: float = 0.0

    def grown(self, figures: Sequence[Figures]) -> str | None:
        """Return a sentence if the figure has grown, None if it is flat."""
        quarter = len(figures) // 4
        warm = max(self.of(each) for each in figures[quarter : 2 * quarter])
        last = max(self.of(each) for each in figures[-quarter:])
        if last <= warm + max(self.more, int(self.share * warm)):
            return None
        return f"{self.what}: {warm:,} in the second quarter, {last:,} in the last"


def _limits() -> list[Limit]:
    limits = [Limit(what="half-closed connections", of=lambda each: each.half_closed, more=4)]
    for number, process in enumerate(PROCESSES):
        limits += [
            Limit(what=f"descriptors of the {process}", of=lambda each, n=number: each.descriptors[n], more=16),  # type: ignore[misc]
            Limit(what=f"threads of the {process}", of=lambda each, n=number: each.threads[n], more=8),  # type: ignore[misc]
            Limit(what=f"memory of the {process}, MB", of=lambda each, n=number: each.memory_mb[n], more=64, share=0.2),  # type: ignore[misc]
        ]
    return [
        *limits,
        Limit(what="the JVM's live heap, MB", of=lambda each: each.heap_mb, more=16, share=0.2),
        Limit(what="files of the checkpoint", of=lambda each: each.checkpoint_files, more=50, share=0.2),
    ]


LIMITS: Final = _limits()


def soak(folder: Path, *, batches: int, say: Callable[[str], None]) -> list[Figures]:
    """Run a job for so many batches, and return what it held on its way."""
    log, out, checkpoint = folder / "log", folder / "out", folder / "checkpoint"
    every = max(1, batches // _SAMPLES)
    figures: list[Figures] = []
    events = stream(log, out_of_orderness="0s")
    counts = events.key_by("k").window(sw.tumbling("1m"), name="counts").aggregate(n=sw.count(), total=sw.sum("v"))
    pipeline = sw.Pipeline(
        "soak",
        counts.to(sw.sinks.files(out, merge_after=100)),
        counts.late.drop(),
        events.dead_letters.drop(),
        key_groups=2,
    )

    def append(number: int) -> None:
        rows = [record(number, number * MINUTE + 1_000 * n, key) for n, key in enumerate(_KEYS)]
        write_file(log, "0", f"{number:020d}", rows, written_s=WRITTEN_S + number)

    def on_batch(report: BatchReport) -> None:
        if report.batch % every == 0:
            figures.append(Figures.taken(report.batch, job.spark, checkpoint, out))
            say(row(figures[-1]))
        if report.batch >= batches:
            job.stop()
        append(report.batch + 1)

    append(0)
    job: Job = make_job(
        pipeline.plan(),
        RunOptions(
            spark=spark_session(master="local[2]", name="soak", conf=_CONF),
            checkpoint=checkpoint,
            partitions=2,
            trigger="0s",
            on_batch=on_batch,
        ),
    )
    job.run()
    return figures


def head() -> str:
    """Return the head of the table, in Markdown."""
    names = [f"{what}: {process}" for what in ("descriptors", "threads", "MB") for process in PROCESSES]
    titles = ["batch", *names, "MB: live heap", "half-closed", "files: checkpoint", "files: sink"]
    return f"| {' | '.join(titles)} |\n|{'--:|' * len(titles)}"


def row(figures: Figures) -> str:
    """Return a line of the table."""
    cells = [
        figures.batch,
        *figures.descriptors,
        *figures.threads,
        *figures.memory_mb,
        figures.heap_mb,
        figures.half_closed,
        figures.checkpoint_files,
        figures.sink_files,
    ]
    return f"| {' | '.join(f'{cell:,}' for cell in cells)} |"


def main() -> int:
    """Run the soak; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.soak.run", description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=2_000, help="how many batches (2000)")
    options = parser.parse_args()
    began = time.monotonic()
    print(head(), flush=True)
    with tempfile.TemporaryDirectory(prefix="slackwater-soak-") as folder:
        figures = soak(Path(folder), batches=options.batches, say=lambda line: print(line, flush=True))
    grown = [said for limit in LIMITS if (said := limit.grown(figures)) is not None]
    took = f"{options.batches:,} batches in {time.monotonic() - began:.0f} s"
    print(f"\nsoak: {took}: {'; '.join(grown) or 'nothing has grown'}", flush=True)
    return 1 if grown else 0


def _files(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))


if __name__ == "__main__":
    sys.exit(main())
