"""A slow and a silent partition: nobody's honest events are late, which one watermark for all cannot give."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import slow_partition
from benchmarks.slow_partition import PARTITIONS, PER_ROUND, ours, produce, sparks
from tests.connectors.kafka.topics import Topics

ROUNDS = 10
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]


def test_no_honest_event_is_late_per_partition_and_one_watermark_loses_some(
    spark: SparkSession, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_partition, "ROUNDS", ROUNDS)
    events = produce(topics.servers, "slow-partition")
    mine = ours(spark, topics.servers, "slow-partition", tmp_path)
    theirs = sparks(spark, topics.servers, "slow-partition", tmp_path)
    assert events == ROUNDS * PER_ROUND * (PARTITIONS - 1)
    assert (mine.events, theirs.events) == (events, events)
    assert mine.late == 0
    assert mine.batches_with_results > 2, "the silent partition does not hold the results for ever"
    assert theirs.late > PER_ROUND, "the same stream under one watermark"
