"""What is wrong with sinks and sources is known before Spark is started, which takes many seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.kafka.broker import free_port
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.sink import Mark, Sink, SinkBatch, SinkWriter, Slot
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.engine.outputs.deliveries import Deliveries, prepare_without_spark
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from slackwater.testing import SinkHarness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.engine.checkpoint.lock import Lease
    from slackwater.engine.outputs.evaluated import EvaluatedBatch
    from slackwater.plan.plan import Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class Noted(Sink):
    """A sink that notes for which slots it was prepared."""

    slots: list[Slot] = field(default_factory=list)

    def prepare(self, slot: Slot) -> None:
        self.slots.append(slot)

    def open(self, slot: Slot) -> SinkWriter:
        return _Writer()

    def __str__(self) -> str:
        return "noted"


class _Writer(SinkWriter):
    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        assert list(batch.frames())


@dataclass(kw_only=True)
class _Batch:
    """A batch of one row for the output `rows.rows`."""

    number: int

    @property
    def rows(self) -> dict[str, int]:
        return {"rows.rows": 1}

    def is_large(self, output: str) -> bool:
        return False

    def sink_batch(self, output: str, schema: pl.Schema) -> SinkBatch:
        rows = int(output == "rows.rows")
        return SinkBatch(batch=self.number, schema=schema, rows=rows, frames=lambda: iter([pl.DataFrame({"k": ["a"]})]))


class _Free:
    def check(self) -> None:
        """Nobody else runs the job."""


def plan_to(sink: Sink, folder: Path, source: Any = None) -> Plan:  # noqa: ANN401  any source
    (folder / "data").mkdir(exist_ok=True)
    rows = sw.stream("rows", source or sw.sources.log(folder / "data")).decode(sw.formats.json("k string, n long"))
    return sw.Pipeline("p", rows.to(sink), rows.dead_letters.drop()).plan()


def no_spark() -> None:
    pytest.fail("Spark would be started now")


@pytest.mark.parametrize(
    "sink",
    [
        lambda port: sw.sinks.kafka(f"localhost:{port}", "totals"),
        lambda port: sw.sinks.postgres(f"postgresql://ada@localhost:{port}/shop", "totals"),
        lambda port: sw.sinks.redis(f"redis://localhost:{port}/0", key=["k"]),
        lambda port: sw.sinks.http(f"http://localhost:{port}/totals", rejected=sw.sinks.console()),
    ],
    ids=["kafka", "postgres", "redis", "http"],
)
def test_server_that_is_away_is_known_before_spark_starts(sink: Callable[[int], Sink], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="SINK_UNREACHABLE"):
        make_job(plan_to(sink(free_port()), tmp_path), RunOptions(checkpoint=tmp_path / "c"), on_start=no_spark)


def test_topic_that_is_missing_is_known_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_of_them(_cluster: Cluster, _names: Iterable[str], _pattern: str | None) -> dict[str, str]:
        return {}

    monkeypatch.setattr(Cluster, "topics", none_of_them)
    monkeypatch.setattr(Cluster, "names", lambda _: [])
    plan = plan_to(sw.sinks.console(), tmp_path, sw.sources.kafka("localhost:9", topic="flights"))
    with pytest.raises(RunError, match=r"KAFKA_TOPIC_MISSING.*flights"):
        make_job(plan, RunOptions(checkpoint=tmp_path / "c"), on_start=no_spark)
    assert not (tmp_path / "c").exists(), "a job that did not start leaves nothing"


def test_sink_that_was_prepared_before_spark_is_not_prepared_again(tmp_path: Path) -> None:
    sink = Noted()
    plan = plan_to(sink, tmp_path)
    prepared = prepare_without_spark(plan, {}, take_over=False)
    deliveries = deliveries_of(plan, tmp_path, prepared=prepared)
    deliveries.open(deliveries.checkpoint.next_clock())
    assert [slot.delivered_before for slot in sink.slots] == [False]


def test_sink_without_marks_knows_that_it_was_delivered_to(tmp_path: Path) -> None:
    sink = Noted(delivery="at_least_once")
    plan = plan_to(sink, tmp_path)
    deliveries = deliveries_of(plan, tmp_path)
    clock = deliveries.checkpoint.next_clock()
    deliveries.open(clock)
    marks = deliveries.deliver(cast("EvaluatedBatch", _Batch(number=0)), clock)
    prepare_without_spark(plan, marks, take_over=False)
    prepare_without_spark(plan, marks, take_over=True)
    assert [slot.delivered_before for slot in sink.slots] == [False, True, False]


def test_job_is_shown_in_one_line(tmp_path: Path) -> None:
    plan = plan_to(Noted(), tmp_path)
    checkpoint = open_checkpoint(tmp_path / "c", plan, partitions=1)
    job = Job(plan=plan, spark=cast("SparkSession", None), checkpoint=checkpoint)
    assert repr(job) == f"<Job p, checkpoint {tmp_path / 'c'}, next batch 0>"


def test_folder_of_another_run_is_known_before_spark_starts(tmp_path: Path) -> None:
    sink = sw.sinks.files(tmp_path / "out")
    plan = plan_to(sink, tmp_path)
    written_by("another", sink)
    with pytest.raises(RunError, match=r"SINK_OF_ANOTHER_RUN.*this is a new run; .* if its run has not finished, or"):
        make_job(plan, RunOptions(checkpoint=tmp_path / "c"), on_start=no_spark)
    with pytest.raises(RunError, match=r"FILES_BATCH_TAKEN.*already contains batch 0 or a later one"):
        make_job(plan, RunOptions(checkpoint=tmp_path / "c", take_over=True), on_start=no_spark)
    assert not (tmp_path / "c").exists()


def test_folder_of_the_run_that_is_continued_is_taken_before_spark_starts(tmp_path: Path) -> None:
    sink = sw.sinks.files(tmp_path / "out")
    plan = plan_to(sink, tmp_path)
    checkpoint = open_checkpoint(tmp_path / "c", plan, partitions=1)
    written_by(checkpoint.incarnation, sink)
    with pytest.raises(_StartedError):
        make_job(plan, RunOptions(checkpoint=tmp_path / "c"), on_start=_start)
    written_by("another", sink, batch=1)
    with pytest.raises(RunError, match=rf"SINK_OF_ANOTHER_RUN.*this is run {checkpoint.incarnation[:8]}; "):
        make_job(plan, RunOptions(checkpoint=tmp_path / "c"), on_start=no_spark)


class _StartedError(Exception):
    """Raised where Spark would be started."""


def _start() -> None:
    raise _StartedError


def written_by(incarnation: str, sink: Sink, batch: int = 0) -> None:
    """Let a run deliver a batch to the sink of `plan_to`."""
    run = {"incarnation": incarnation, "take_over": True, "pipeline": "p", "output": "rows.rows"}
    with SinkHarness(sink=sink, schema=pl.Schema({"k": pl.String()}), **run) as job:  # type: ignore[arg-type]
        job.deliver(pl.DataFrame({"k": ["a"]}), batch=batch)


def deliveries_of(plan: Plan, folder: Path, prepared: frozenset[str] = frozenset()) -> Deliveries:
    checkpoint = open_checkpoint(folder / "checkpoint", plan, partitions=1)
    lease = cast("Lease", _Free())
    return Deliveries(plan=plan, checkpoint=checkpoint, lease=lease, is_stopping=lambda: False, prepared=prepared)
