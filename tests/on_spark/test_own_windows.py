"""The window kind of the guide, written outside of the package, and a calendar window: on Spark as in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.connectors.memory.sink import MemorySink
from tests.docs.pages import ROOT, blocks
from tests.on_spark.jobs import Kept, record, run, stream, write_log

DAY = 86_400_000
THURSDAY = 56 * 365 * DAY + 14 * DAY + 63 * DAY
"""2026-03-05, as the guide has it."""


@pytest.mark.spark
def test_window_kind_of_the_guide_runs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    guide: dict[str, Any] = {"__name__": "__main__"}
    exec(blocks(ROOT / "docs" / "guides" / "your-own-windows.md")[0].code, guide)  # noqa: S102  our own page
    write_log(tmp_path / "log", [[record(day, THURSDAY + day * DAY) for day in range(5)]])
    events = stream(tmp_path / "log")
    months: MemorySink = sw.sinks.memory()
    kept = Kept(
        results=events.key_by("k").window(guide["BusinessDays"](), name="days").aggregate(n=sw.count()), events=events
    )
    by_month = events.key_by("k").window(sw.calendar("month", zone="Asia/Tokyo"), name="months").aggregate(n=sw.count())
    pipeline = sw.Pipeline(
        "own",
        kept.results.to(kept.shown),
        by_month.to(months),
        kept.results.late.drop(),
        by_month.late.drop(),
        events.dead_letters.drop(),
        key_groups=2,
    )
    run(spark, pipeline, tmp_path / "checkpoint")
    assert sorted(kept.shown.rows()["n"].to_list()) == [1, 1, 3]
    assert months.rows()["n"].to_list() == [5]
    assert str(months.rows()["window_start"][0]) == "2026-02-28 15:00:00+00:00"
