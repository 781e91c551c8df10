"""Names that need quoting, all in one job: from a DataFrame through a keyed step, to a function and to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

import slackwater as sw
from tests.on_spark.jobs import run
from tests.plan.test_names import AWKWARD

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_any_name_goes_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    (log / "0.json").write_text(json.dumps({name: at for at, name in enumerate(AWKWARD)} | {"ts": 1}))
    schema = StructType([StructField(name, LongType()) for name in (*AWKWARD, "ts")])
    frame = spark.readStream.schema(schema).json(str(log))
    events = sw.stream("events", sw.sources.dataframe(frame)).event_time("ts")
    aggregates = {name: sw.sum(pl.col(name)) for name in AWKWARD[1:]}
    results = (
        events.key_by(AWKWARD[0])
        .window(sw.tumbling("1m"), allowed_lateness="1m", accumulation="retracting")
        .aggregate(**aggregates)
    )
    taken: list[dict[str, Any]] = []

    def take(rows: DataFrame, _: int) -> None:
        taken.extend(row.asDict() for row in rows.collect())

    out = tmp_path / "out"
    pipeline = sw.Pipeline(
        "names",
        results.to(sw.sinks.foreach_batch(take)),
        results.to(sw.sinks.files(out, changelog=True)),
        results.late.drop(),
        events.dead_letters.drop(),
        key_groups=2,
    )
    run(spark, pipeline, tmp_path / "checkpoint")
    [row], [stored] = taken, sw.sinks.read_files(out).collect().to_dicts()
    expected = {name: at for at, name in enumerate(AWKWARD)}
    assert {name: row[name] for name in AWKWARD} == expected
    assert {name: stored[name] for name in AWKWARD} == expected
