"""Logs and jobs that the tests on Spark share: small, and with as few batches as show the matter."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.connectors.memory.sink import MemorySink
from slackwater.observe.metrics.monitor import OnRecord
from slackwater.pipeline import Pipeline
from slackwater.plan.streams import Results, Stream
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job

SCHEMA: Final = "id long, k string, ts long, v double"
MINUTE: Final = 60_000
WRITTEN_S: Final = 1_767_000_000


class CrashError(Exception):
    """Raised where a process would have died."""


def write_file(log: Path, partition: str, name: str, records: Sequence[dict[str, Any]], *, written_s: int) -> Path:
    """Write one file of a log, as old as `written_s` says: Spark reads files by their time."""
    path = log / partition / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    os.utime(path, (written_s, written_s))
    return path


def write_log(log: Path, files: Sequence[Sequence[dict[str, Any]]], *, partition: str = "0", first_s: int = 0) -> None:
    """Write `files`, one second apart; one of them is a batch."""
    for number, records in enumerate(files):
        write_file(log, partition, f"{number:020d}", records, written_s=WRITTEN_S + first_s + number)


def record(id_: int, ts_ms: int, k: str = "a", v: float = 1.0) -> dict[str, Any]:
    """Return one record."""
    return {"id": id_, "k": k, "ts": ts_ms, "v": v}


def stream(log: Path, *, files_per_batch: int = 1, **time: Any) -> Stream:  # noqa: ANN401  as event_time's
    """Return the stream of a log whose records `record` makes."""
    source = sw.sources.log(log, max_files_per_batch=files_per_batch)
    return sw.stream("events", source).decode(sw.formats.json(SCHEMA)).event_time("ts", **time)


@dataclass(kw_only=True)
class Kept:
    """A pipeline whose outputs are kept in memory."""

    results: Results
    events: Stream
    more: tuple[Results, ...] = ()
    shown: MemorySink = field(default_factory=sw.sinks.memory)
    late: MemorySink = field(default_factory=sw.sinks.memory)
    dead: MemorySink = field(default_factory=sw.sinks.memory)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, with few key groups."""
        return sw.Pipeline(
            "kept",
            self.results.to(self.shown),
            self.results.late.to(self.late),
            self.events.dead_letters.to(self.dead),
            *[end for result in self.more for end in (result.to(sw.sinks.memory()), result.late.to(self.late))],
            key_groups=2,
        )


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    checkpoint: Path,
    *,
    bounded: bool = True,
    on_record: OnRecord | None = None,
    on_run: OnRecord | None = None,
    **options: Any,  # noqa: ANN401  those of RunOptions
) -> Job:
    """Run a pipeline in the tests' session, on two partitions."""
    given: dict[str, Any] = {
        "spark": spark,
        "checkpoint": checkpoint,
        "bounded": bounded,
        "partitions": 2,
        "trigger": "0s",
    }
    made = make_job(pipeline.plan(), RunOptions(**given, **options), on_record=on_record, on_run=on_run)
    made.run()
    return made


def crash_after(batch: int) -> Callable[[Any], None]:
    """Return an `on_batch` that fails when `batch` is delivered and its clock written, but not committed."""

    def on_batch(report: Any) -> None:  # noqa: ANN401
        if report.batch == batch:
            raise CrashError

    return on_batch


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of a frame, sorted."""
    return sorted(frame.select(columns).rows())
