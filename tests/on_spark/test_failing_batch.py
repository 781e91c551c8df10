"""A job that fails on the same batch again and again: the status names the rows, and skipping them ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.observe.metrics.failing import failing_batch
from slackwater.spark.skipped_rows import UnmetRowsWarning
from tests.on_spark.jobs import run

pytestmark = pytest.mark.spark


class Fails(sw.Process):
    """Fails on one event."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, int]]:
        if event["id"] == 5:
            raise ValueError("no")
        yield {"n": event["id"]}


def test_the_status_names_the_rows_that_skipping_takes(spark: SparkSession, tmp_path: Path) -> None:
    for number, first in enumerate((0, 3)):
        path = tmp_path / "log" / "eu" / f"{first:020d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"id": first + row, "ts": 1_000 * number}) + "\n" for row in range(3)))
    source = sw.sources.log(tmp_path / "log", max_files_per_batch=1)
    events = sw.stream("events", source).decode(sw.formats.json("id long, ts long")).event_time("ts")
    sink = sw.sinks.memory()
    dead = sw.sinks.memory()
    results = events.map(memory_is_full).key_by("id").process(Fails(), output="n long", name="works")
    pipeline = sw.Pipeline("p", results.to(sink), events.dead_letters.to(dead), key_groups=2)
    for failures in (1, 2):
        with pytest.raises(Exception, match="MemoryError"):
            run(spark, pipeline, tmp_path / "checkpoint")
        found = failing_batch(tmp_path / "checkpoint")
        assert found is not None
        assert (found.batch, found.failures, found.rows) == (1, failures, ["events/eu:3-5"])
    skip = ["events/eu:4", "events/eu:9"]
    with pytest.warns(UnmetRowsWarning, match="1 row that --skip-rows names .*: events/eu:9-9;"):
        run(spark, pipeline, tmp_path / "checkpoint", skip_rows=skip)
    assert failing_batch(tmp_path / "checkpoint") is None
    assert sorted(sink.rows()["n"].to_list()) == [0, 1, 2, 3]
    letters = dead.rows().sort("offset")
    assert letters.select("partition", "offset", "step", "reason").rows() == [
        ("eu", 4, "events", "skipped"),
        ("eu", 5, "works", "failed"),
    ]
    assert letters["source"].unique().to_list() == [str(path)], "the file, for a keyed step as well"


def memory_is_full(rows: pl.DataFrame) -> pl.DataFrame:
    """Need more memory than there is, for one of the rows."""
    if (rows["id"] == 4).any():
        raise MemoryError
    return rows
