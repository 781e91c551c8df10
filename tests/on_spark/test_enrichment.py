"""Lookups and tables on Spark: a batch that is run again, and a store that is down for a while.

file 0   a b      table: rate 1
file 1   a c      delivered and its clock written, then a crash; the store and the table change; run again
file 2   a        table: rate 2
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.base.errors import notice
from slackwater.connectors.memory.sink import MemorySink
from slackwater.plan.streams import Stream
from slackwater.spark import dependencies as outside
from slackwater.spark.dependencies import OutsideWarning
from tests.on_spark.jobs import CrashError, crash_after, record, run, stream, write_log

pytestmark = pytest.mark.spark


def counting(folder: Path) -> Callable[[str], Awaitable[dict[str, Any]]]:
    """Return a store that says how often any worker has asked it, and fails while the file `down` is there."""
    asked, down = str(folder / "asked"), str(folder / "down")

    async def fetch(key: str) -> dict[str, Any]:
        if os.path.exists(down):  # noqa: ASYNC240, PTH110  what the worker needs is little
            raise ConnectionError("the store is down")
        out = os.open(asked, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(out, b"x")
        number = os.fstat(out).st_size
        os.close(out)
        return dict.fromkeys(("name", "label"), f"{key} at {number}")

    return fetch


@dataclass(kw_only=True)
class Enriched:
    """A pipeline that enriches rows before a window and its results after it."""

    folder: Path

    def __post_init__(self) -> None:
        self.rate(1.0)
        self.sink, self.results = MemorySink(), MemorySink()

    def rate(self, value: float) -> None:
        pl.DataFrame({"k": ["a", "b", "c"], "rate": [value] * 3}).write_parquet(self.folder / "rates.parquet")

    @property
    def asked(self) -> int:
        return (self.folder / "asked").stat().st_size

    @property
    def pipeline(self) -> sw.Pipeline:
        store = sw.lookups.function(counting(self.folder))
        events: Stream = stream(self.folder / "log")
        looked = events.lookup(store, key="k", output="name string", cache=None, retries=0)
        joined = looked.join_table(sw.table(self.folder / "rates.parquet"), on="k")
        counts = joined.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count(), rates=sw.sum("rate"))
        named = counts.lookup(store, key="k", output="label string", cache=None, name="labels", missing="null")
        return sw.Pipeline(
            "enriched",
            joined.to(self.sink),
            named.to(self.results),
            counts.late.drop(),
            events.dead_letters.drop(),
            named.dead_letters.drop(),
            key_groups=2,
        )


def written(folder: Path) -> Enriched:
    folder.mkdir(parents=True, exist_ok=True)
    files = [[record(0, 1_000, "a"), record(1, 2_000, "b")], [record(2, 3_000, "a"), record(3, 4_000, "c")]]
    write_log(folder / "log", [*files, [record(4, 5_000, "a")]])
    return Enriched(folder=folder)


def test_rule_11_a_batch_run_again_has_the_answers_and_the_table_it_had(spark: SparkSession, tmp_path: Path) -> None:
    enriched = written(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(CrashError):
        run(spark, enriched.pipeline, checkpoint, on_batch=crash_after(1))
    before, asked = enriched.sink.rows(), enriched.asked
    assert before["rate"].to_list() == [1.0] * 4
    again = MemorySink()
    enriched.sink = again  # remembers nothing, so batch 1 is delivered to it once more
    enriched.rate(2.0)
    job = run(spark, enriched.pipeline, checkpoint, take_over=True)
    rows = again.rows().sort("id")
    assert_frame_equal(rows.filter(pl.col("id").is_in([2, 3])), before.sort("id").filter(pl.col("id").is_in([2, 3])))
    assert rows.filter(pl.col("id") == 4)["rate"].to_list() == [2.0]
    assert job.reports[0].stats.lookups == {}, "all answers were written down"
    assert job.reports[1].lookups["events.lookup"].misses == 1
    assert enriched.asked == asked + 1 + enriched.results.rows().height
    assert enriched.results.rows()["label"].null_count() == 0
    folders = sorted(path.name for path in (checkpoint / "slackwater" / "lookups" / "events.lookup").iterdir())
    assert folders == ["0", "1", "2"]
    assert len(list((checkpoint / "slackwater" / "tables" / "events.join_table").iterdir())) == 2


@pytest.mark.long
def test_a_batch_waits_for_a_store_that_is_down_and_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enriched = written(tmp_path)
    (tmp_path / "down").touch()

    def said(code: str, **facts: object) -> str:
        if code == "LOOKUP_WAITING":
            (tmp_path / "down").unlink(missing_ok=True)
        return notice(code, **facts)

    monkeypatch.setattr(outside, "notice", said)
    with pytest.warns(OutsideWarning) as notices:
        run(spark, enriched.pipeline, tmp_path / "checkpoint")
    waiting, back = (str(each.message) for each in notices)
    assert "LOOKUP_WAITING" in waiting
    assert "the store is down" in waiting
    assert "STORE_BACK" in back
    rows = enriched.sink.rows()
    assert sorted(rows["id"].to_list()) == [0, 1, 2, 3, 4]
    assert rows["name"].null_count() == 0
