"""Two drivers on one checkpoint: the second is refused, and one that was replaced delivers nothing more."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.checkpoint.lock import Lease, held, lock_folder
from slackwater.observe.metrics.report import BatchReport
from tests.on_spark.jobs import MINUTE, Kept, record, run, stream, write_log

pytestmark = pytest.mark.spark


def counted(log: Path) -> Kept:
    """Count per minute, over four files of a minute each."""
    write_log(log, [[record(number, number * MINUTE)] for number in range(4)])
    events = stream(log)
    return Kept(events=events, results=events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count()))


def test_second_driver_is_refused_while_the_first_runs(spark: SparkSession, tmp_path: Path) -> None:
    kept, checkpoint = counted(tmp_path / "log"), tmp_path / "checkpoint"
    refused: list[str] = []

    def start_another(_: BatchReport) -> None:
        with pytest.raises(RunError) as error:
            run(spark, kept.pipeline, checkpoint)
        refused.append(error.value.code)

    run(spark, kept.pipeline, checkpoint, on_batch=start_another)
    assert set(refused) == {"CHECKPOINT_IN_USE"}
    assert kept.shown.rows()["n"].to_list() == [1, 1, 1, 1]


@pytest.mark.parametrize("point, shown", [("evaluated", 0), pytest.param("delivered", 1, marks=pytest.mark.long)])
def test_driver_that_was_replaced_delivers_nothing_and_writes_no_clock(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, shown: int
) -> None:
    """It is frozen in batch 2, which shows the first window, and wakes when another has its checkpoint."""
    kept, checkpoint = counted(tmp_path / "log"), tmp_path / "checkpoint"
    with ExitStack() as successor:

        def be_replaced(_pid: int, _signal: int) -> None:
            newest = max(int(path.name) for path in lock_folder(checkpoint).iterdir())
            os.utime(Lease(path=checkpoint, epoch=newest).file, (1, 1))
            successor.enter_context(held(checkpoint))

        monkeypatch.setenv("SLACKWATER_CRASH", f"{point}@2")
        monkeypatch.setenv("SLACKWATER_CRASH_ONCE", str(tmp_path / "struck"))
        monkeypatch.setattr(os, "kill", be_replaced)
        with pytest.raises(RunError, match=r"CHECKPOINT_LOST.*took it over"):
            run(spark, kept.pipeline, checkpoint)
    assert kept.shown.rows().height == shown
    assert not (checkpoint / "slackwater" / "clock" / "3").exists()
