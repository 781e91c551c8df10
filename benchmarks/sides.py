"""The two sides of a comparison: each is a live query in one Spark session, moved on batch by batch.

Only one side works at a time. Spark's waits for files, looking for them now and then. Slackwater's has
a heartbeat and would never rest; so its callback is held at the end of a batch, when all but
Spark's commit is done, until the files of the next batch are in place. What it was held is taken
off the batch's time, which both sides take from Spark's own progress: from the trigger's start to
the commit.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.job import Job

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Deliver = Callable[[list[Path]], None]
_PATIENCE_S: Final = 300
_LOOK_EVERY_S: Final = 0.02


@dataclass(frozen=True, kw_only=True)
class BatchTime:
    """What one batch took, by Spark's own progress."""

    batch: int
    seconds: float
    """From the trigger's start to the commit."""
    steps_ms: dict[str, int]
    """Spark's own account of it, less what the batch was held."""
    query: str
    """Spark's id of the running query, which its jobs carry."""
    report: BatchReport | None = None

    @classmethod
    def of(
        cls,
        progress: Any,  # noqa: ANN401  PySpark's StreamingQueryProgress
        *,
        held_s: float = 0.0,
        report: BatchReport | None = None,
    ) -> BatchTime:
        """Take a batch's time from its progress."""
        steps: dict[str, int] = dict(progress.durationMs)
        for step in ("triggerExecution", "addBatch"):
            steps[step] -= round(held_s * 1_000)
        return cls(
            batch=progress.batchId,
            seconds=steps["triggerExecution"] / 1_000,
            steps_ms=steps,
            query=str(progress.runId),
            report=report,
        )


@dataclass(kw_only=True)
class OurSide:
    """A Slackwater job that runs one batch at a time."""

    job: Job
    deliver: Deliver
    """Puts a batch's files where the job reads."""
    _reports: queue.Queue[BatchReport | BaseException] = field(default_factory=queue.Queue)
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _held_s: dict[int, float] = field(default_factory=dict)
    _batches: list[BatchReport] = field(default_factory=list)
    _thread: threading.Thread | None = None
    _query: StreamingQuery | None = None

    def batch(self, files: list[Path], rows: int) -> BatchReport:
        """Run one batch over `files`; returns when all of it is done but Spark's commit."""
        self.deliver(files)
        report = self._next()
        if report.rows != rows:
            message = f"a batch of Slackwater's read {report.rows:,} rows instead of {rows:,}"
            raise RuntimeError(message)
        return report

    def finish(self) -> list[BatchTime]:
        """Let the last batch be committed, stop, and return what each took."""
        self._next()
        self._batches.pop()  # the heartbeat alone: it proves that the batch before is committed
        assert self._query is not None
        progress = {entry.batchId: entry for entry in self._query.recentProgress}
        self.close()
        return [
            BatchTime.of(progress[done.batch], held_s=self._held_s[done.batch], report=done) for done in self._batches
        ]

    def close(self) -> None:
        """Stop the job, whatever state it is in."""
        if self._thread is None or not self._thread.is_alive():
            return
        # The batch that would come next is refused from inside, which Spark logs as an error.
        context = self.job.spark.sparkContext
        context.setLogLevel("OFF")
        self.job.stop()
        self._go.release()
        self._thread.join(_PATIENCE_S)
        context.setLogLevel("ERROR")

    def _next(self) -> BatchReport:
        if self._thread is None:
            self.job.options = replace(self.job.options, on_batch=self._on_batch)
            self._thread = threading.Thread(target=self._run, name="ours", daemon=True)
            self._thread.start()
        else:
            self._go.release()
        done = self._reports.get(timeout=_PATIENCE_S)
        if isinstance(done, BaseException):
            raise done
        if self._query is None:
            [self._query] = [query for query in self.job.spark.streams.active if query.name == self.job.plan.name]
        self._batches.append(done)
        return done

    def _run(self) -> None:
        try:
            self.job.run()
        except BaseException as error:  # noqa: BLE001  raised again where the batch is waited for
            self._reports.put(error)

    def _on_batch(self, report: BatchReport) -> None:
        began = time.monotonic()
        self._reports.put(report)
        self._go.acquire()
        self._held_s[report.batch] = time.monotonic() - began


@dataclass(kw_only=True)
class SparkSide:
    """A query of Spark's own that runs one batch at a time."""

    query: StreamingQuery
    deliver: Deliver
    checkpoint: Path
    reads: int = 1
    """How often the query reads each file."""
    _times: list[BatchTime] = field(default_factory=list)
    _next: int = 0

    def batch(self, files: list[Path], rows: int) -> BatchTime:
        """Run one batch over `files`; returns when it is committed."""
        self.deliver(files)
        patience = time.monotonic() + _PATIENCE_S
        while time.monotonic() < patience:
            if not self.query.isActive:
                raise self.query.exception() or RuntimeError("Spark's query has stopped")
            # The progress is published right after the commit.
            committed = self.checkpoint / "commits" / str(self._next)
            if committed.exists() and (progress := self._progress(self._next)) is not None:
                self._next += 1
                if progress.numInputRows == 0:
                    continue  # a topic's first offsets are a batch, too
                if progress.numInputRows != rows * self.reads:
                    message = f"a batch of Spark's read {progress.numInputRows:,} rows instead of {rows * self.reads:,}"
                    raise RuntimeError(message)
                self._times.append(BatchTime.of(progress))
                return self._times[-1]
            time.sleep(_LOOK_EVERY_S)
        message = f"Spark's batch {self._next} took longer than {_PATIENCE_S} s"
        raise TimeoutError(message)

    def finish(self) -> list[BatchTime]:
        """Stop, and return what each batch took."""
        self.close()
        return self._times

    def close(self) -> None:
        """Stop the query."""
        self.query.stop()

    def _progress(self, number: int) -> Any:  # noqa: ANN401  PySpark's StreamingQueryProgress
        # A trigger that found nothing reports the number of the batch to come, and no `addBatch`.
        found = [entry for entry in self.query.recentProgress if entry.batchId == number]
        return next((entry for entry in found if "addBatch" in entry.durationMs), None)


def put(files: list[Path], folder: Path) -> None:
    """Put a batch's files into `folder` without copying them, within microseconds of each other."""
    for file in files:
        os.link(file, folder / file.name)
