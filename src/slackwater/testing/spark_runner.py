"""Conformance cases on Spark: a real query whose batches are given their rows and clocks by hand."""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl
from pyspark.sql import SparkSession

from slackwater.base.times import MIN_MS
from slackwater.eventtime.clock import Clock, StreamTime
from slackwater.sources import Source, log
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.session import spark_session
from slackwater.spark.start import make_job
from slackwater.testing.case_pipelines import case_pipeline, stream_watermark
from slackwater.testing.cases import STREAM, Case, Event
from slackwater.testing.replays import StepOutput

_LONGEST_BATCH_S: Final = 120


@dataclass(frozen=True, kw_only=True)
class _Order:
    """The rows and the clock of the next batch."""

    rows: list[dict[str, object]]
    watermark_ms: int
    now_ms: int


class SparkRunner:
    """Runs one case as one query, with its own log, checkpoint and outputs.

    The driver's callback ends each batch by asking for the next clock. The runner then waits for an order, writes its
    rows to the log and returns its clock, so the next batch has exactly these rows and this clock.
    """

    def __init__(self, case: Case, spark: SparkSession | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="slackwater-case-"))
        (self._folder / "log" / "0").mkdir(parents=True)
        self.case = case_pipeline(case, self._log)
        self._schema = self.case.pipeline.plan().sources[0].source.schema
        self._spark = spark or spark_session(master="local[2,1]", name="conformance")
        self._orders: queue.Queue[_Order | None] = queue.Queue()
        self._finished: queue.Queue[int | BaseException] = queue.Queue()
        self._files = itertools.count()
        self._watermark_ms, self._now_ms = MIN_MS, 0
        self._start()
        first = case["params"].get("initial_watermark_ms")
        if first is not None:
            self._watermark_ms = stream_watermark(self.case, first)
            self._batch([])

    def step(
        self, events: Sequence[Event], *, watermark_ms: int | None, processing_time_ms: int | None, restart: bool
    ) -> StepOutput:
        """Run one step, see `Runner`: a batch with the rows, then one under the moved clocks."""
        out = StepOutput()
        if restart:
            self._stop()
            self._start()
        if events:
            self._collect(out, self._batch(self.case.rows(events)))
        if processing_time_ms is not None or watermark_ms is not None:
            self._now_ms = max(self._now_ms, processing_time_ms or 0)
            if watermark_ms is not None:
                self._watermark_ms = max(self._watermark_ms, stream_watermark(self.case, watermark_ms))
            self._collect(out, self._batch([]))
        return out

    def close(self) -> None:
        """Stop the query and remove its files."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _log(self, schema: pl.Schema) -> Source:
        return log(self._folder / "log", format="parquet", schema=schema)

    def _start(self) -> None:
        self._job = make_job(
            self.case.pipeline.plan(),
            RunOptions(spark=self._spark, checkpoint=self._folder / "checkpoint", trigger="0s", partitions=1),
            clock_hook=self._next_clock,
        )
        self._thread = threading.Thread(target=self._run, args=(self._job,), daemon=True)
        self._thread.start()
        self._await_batch()

    def _run(self, job: Job) -> None:
        try:
            job.run()
        except BaseException as error:  # noqa: BLE001  passed to the thread that waits for the batch
            self._finished.put(error)

    def _stop(self) -> None:
        self._job.stop()
        self._orders.put(None)
        self._thread.join(_LONGEST_BATCH_S)

    def _batch(self, rows: list[dict[str, object]]) -> int:
        self._orders.put(_Order(rows=rows, watermark_ms=self._watermark_ms, now_ms=self._now_ms))
        return self._await_batch()

    def _await_batch(self) -> int:
        finished = self._finished.get(timeout=_LONGEST_BATCH_S)
        if isinstance(finished, BaseException):
            raise finished
        return finished

    def _next_clock(self, clock: Clock) -> Clock:
        """End a batch: report it, wait for the next order, and prepare its batch. Runs in the driver's callback."""
        self._finished.put(clock.batch - 1)
        order = self._orders.get()
        previous = clock.streams[STREAM].previous_ms
        if order is None:
            stay = StreamTime(watermark_ms=previous, previous_ms=previous)
            return replace(clock, streams={STREAM: stay}, now_ms=self._now_ms)
        if order.rows:
            final = self._folder / "log" / "0" / f"{next(self._files):020d}.parquet"
            temporary = final.with_name(f".{final.name}")
            pl.DataFrame(order.rows, schema=self._schema, orient="row").write_parquet(temporary)
            os.rename(temporary, final)  # noqa: PTH104  atomic, as every producer must be
        time = StreamTime(watermark_ms=order.watermark_ms, previous_ms=previous)
        return replace(clock, streams={STREAM: time}, now_ms=order.now_ms)

    def _collect(self, out: StepOutput, batch: int) -> None:
        shown, late, _ = self.case.kept
        out.rows += self.case.shown(shown.batch(batch))
        out.late += self.case.late(late.batch(batch))
