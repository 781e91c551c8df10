"""Every keyed step that is no plain window: a driver that fails while it delivers, and a job that continues.

The driver fails where the kill test would kill it, in the tests' own Spark session; real kills are in `tests/crash`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.tools.cli.loading import load_pipeline
from tests.crash.comparison import OUTPUTS, compare, read
from tests.crash.log import write_log
from tests.matrix.jobs import crashing
from tests.on_spark.jobs import CrashError, run

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings(r"ignore:\[DEAD_LETTERS_MANY\]"),  # of a batch of 68 records, 10 are broken on purpose
]

ROUNDS = 7
"""Enough for rows that correct, and for rows that are late for good."""
PIPELINE = Path(__file__).parents[1] / "crash" / "steps_pipeline.py"


def test_joins_processes_patterns_and_deduplications_continue_after_a_driver_that_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = write_log(tmp_path / "log", rounds=ROUNDS)
    monkeypatch.setenv("CRASH_LOG", str(tmp_path / "log"))
    whole, struck = tmp_path / "whole", tmp_path / "struck"

    def start(job: Path) -> None:
        job.mkdir(exist_ok=True)
        monkeypatch.setenv("CRASH_OUT", str(job / "out"))
        run(spark, load_pipeline(PIPELINE), job / "checkpoint")

    start(whole)
    empty = [name for name in OUTPUTS["steps_pipeline"] if read(whole / "out" / name).is_empty()]
    assert empty == [], "every step has something to lose"
    with crashing(monkeypatch, tmp_path, "written", 5), pytest.raises(CrashError):
        start(struck)
    start(struck)
    verdict = compare(struck, whole, events, None, OUTPUTS["steps_pipeline"])
    assert (verdict.lost, verdict.doubled, verdict.examples) == (0, 0, ())
