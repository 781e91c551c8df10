"""The conformance cases on Spark, each as a real query with scripted rows and clocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.testing.cases import Case, reason_to_skip
from slackwater.testing.conformance import load
from slackwater.testing.replays import depends_on_batches, replay
from slackwater.testing.spark_runner import SparkRunner

CASES = [
    case
    for _, case in load([Path(__file__).parents[1] / "conformance" / "cases"])
    if case["operator"] == "window_agg" and reason_to_skip(case) is None
]


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_replayed_whole_on_spark_gives_its_rows(case: Case, spark: SparkSession) -> None:
    runner = SparkRunner(case, spark)
    try:
        assert [str(mismatch) for mismatch in replay(case, lambda: runner, "whole")] == []
    finally:
        runner.close()


@pytest.mark.spark
def test_case_replayed_row_by_row_on_spark_gives_its_rows(spark: SparkSession) -> None:
    [case] = [case for case in CASES if case["id"] == "lat-beam-default-late"]
    assert depends_on_batches(case) is None
    runner = SparkRunner(case, spark)
    try:
        assert [str(mismatch) for mismatch in replay(case, lambda: runner, "rows")] == []
    finally:
        runner.close()
