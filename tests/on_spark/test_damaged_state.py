"""State that Spark cannot load: one sentence with the file and what to do, and no stack of calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.base.errors import RunError
from tests.on_spark.jobs import MINUTE, CrashError, Kept, crash_after, record, run, stream, write_log

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_damaged_state_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "log", [[record(number, number * MINUTE)] for number in range(2)])
    events, checkpoint = stream(tmp_path / "log"), tmp_path / "checkpoint"
    kept = Kept(events=events, results=events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count()))
    with pytest.raises(CrashError):
        run(spark, kept.pipeline, checkpoint, on_batch=crash_after(1))
    for path in [*checkpoint.glob("state/*/*/1.zip"), *checkpoint.glob("state/*/*/1.changelog")]:
        path.write_bytes(path.read_bytes()[:5])
    with pytest.raises(
        RunError, match=rf"^\[CHECKPOINT_DAMAGED\].*{checkpoint}/state.* is damaged: .*; restore"
    ) as error:
        run(spark, kept.pipeline, checkpoint)
    assert "\n" not in str(error.value)
