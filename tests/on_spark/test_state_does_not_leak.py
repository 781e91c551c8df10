"""State does not leak: with a moving watermark it stays flat, and after the last window nothing is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.on_spark.jobs import MINUTE, record, stream, write_log

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BATCHES = 40
KEYS = [f"user-{number}" for number in range(20)]


@pytest.mark.long
def test_state_stays_flat_and_ends_empty(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own figures: rows in the state store (a piece, or a group's index) and the memory it uses."""
    write_log(
        tmp_path / "log",
        [[record(0, minute * MINUTE + 1_000 * n, key) for n, key in enumerate(KEYS)] for minute in range(BATCHES)],
    )
    events = stream(tmp_path / "log", out_of_orderness="30s")
    tumbling = events.key_by("k").window(sw.tumbling("1m"), allowed_lateness="2m", name="tumbling")
    hopping = events.key_by("k").window(sw.hopping("4m", every="1m"), name="hopping")
    visits = events.key_by("k").window(sw.session("30s"), allowed_lateness="1m", name="visits")
    last = events.key_by("k").window(sw.sliding("3m"), name="sliding")
    results = [step.aggregate(n=sw.count(), total=sw.sum("v")) for step in (tumbling, hopping, visits, last)]
    ends = [end for result in results for end in (result.to(sw.sinks.memory()), result.late.drop())]
    pipeline = sw.Pipeline("flat", *ends, events.dead_letters.drop(), key_groups=2)

    progress: dict[int, dict[str, Any]] = {}

    def note(report: Any) -> None:  # noqa: ANN401
        # What Spark says of a batch stands there when the next one runs.
        for told in job.query.recentProgress:
            progress[told["batchId"]] = told["stateOperators"][0]

    job = make_job(
        pipeline.plan(),
        RunOptions(spark=spark, checkpoint=tmp_path / "c", partitions=1, bounded=True, trigger="0s", on_batch=note),
    )
    job.run()

    figures = [progress[batch] for batch in range(BATCHES - 1)]
    rows = [figure["numRowsTotal"] for figure in figures]
    memory = [figure["memoryUsedBytes"] for figure in figures]
    held = [sum(step["bytes"] for step in report.stats.state.values()) for report in job.reports[:BATCHES]]
    warm, half = 8, BATCHES // 2
    assert max(rows[half:]) <= max(rows[warm:half]), rows
    assert max(memory[half:]) <= 1.25 * max(memory[warm:half]), memory
    assert max(held[half:]) <= 1.1 * max(held[warm:half]), held

    assert {step: held["pieces"] for step, held in job.reports[-1].stats.state.items()} == dict.fromkeys(
        ("tumbling", "hopping", "visits", "sliding"), 0
    )
    assert job.query.lastProgress["stateOperators"][0]["numRowsTotal"] == 0
