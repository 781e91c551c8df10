"""A sink that becomes slow makes the source wait, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.backpressure import MOST_GROWTH, measure
from tests.connectors.kafka.topics import Topics

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]


def test_slow_sink_makes_the_source_wait_and_the_job_catches_up(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    outcome = measure(spark, topics.servers, tmp_path, phase_s=15.0)
    usual, slow, again = outcome.phases
    assert outcome.counted == outcome.sent
    assert outcome.last_lag == 0
    assert slow.most_lag > 2 * max(usual.most_lag, 1), "lag grows while the sink is slow, and is reported"
    assert slow.most_mb <= MOST_GROWTH * usual.most_mb, "memory does not grow with the lag"
    assert again.batches > slow.batches
