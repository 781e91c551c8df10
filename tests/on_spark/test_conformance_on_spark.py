"""Conformance cases on Spark, each as a real query with scripted rows and clocks.

The semantics are proven in memory, with every case; here it is the wiring, with a case of each area and
most of those that restart. `make conformance ENGINE=spark` replays them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.testing.cases import reason_to_skip
from slackwater.testing.conformance import load
from slackwater.testing.replays import depends_on_batches, replay
from slackwater.testing.spark_runner import SparkRunner

WIRING = ("acc-flink-early-late-retract",)
LONGER = (
    "ij-spark-left-range",
    "tmb-spark-recovery",
    "trg-beam-early-proctime",
    "dd-spark-with-watermark",
    "tj-flink-inner",
    "lat-flink-session-10ms",
    "hop-spark-10s-3s",
    "gc-flink-count4-purge",
    "dd-flink-last-by-time",
    "gc-flink-tumbling-count3",
    "ij-flink-restore",
    "gc-flink-global-continuous",
    "lat-beam-drop-beyond",
    "ses-beam-boundary-separate",
)
CASES = {case["id"]: case for _, case in load([Path(__file__).parents[1] / "conformance" / "cases"])}


@pytest.mark.spark
@pytest.mark.parametrize("name", [*WIRING, *(pytest.param(name, marks=pytest.mark.long) for name in LONGER)])
def test_case_replayed_whole_on_spark_gives_its_rows(name: str, spark: SparkSession) -> None:
    case = CASES[name]
    assert reason_to_skip(case) is None
    runner = SparkRunner(case, spark)
    try:
        assert [str(mismatch) for mismatch in replay(case, lambda: runner, "whole")] == []
    finally:
        runner.close()


@pytest.mark.spark
@pytest.mark.long
def test_case_replayed_row_by_row_on_spark_gives_its_rows(spark: SparkSession) -> None:
    case = CASES["lat-beam-default-late"]
    assert depends_on_batches(case) is None
    runner = SparkRunner(case, spark)
    try:
        assert [str(mismatch) for mismatch in replay(case, lambda: runner, "rows")] == []
    finally:
        runner.close()
