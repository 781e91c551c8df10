"""The console prints whatever it is given."""

from __future__ import annotations

import polars as pl
import pytest

import slackwater as sw
from slackwater.testing.sinks import SinkHarness


def test_time_beyond_the_calendar_is_printed_as_stored(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pl.DataFrame({"day": [2**61, 5], "n": [1, 2]}).with_columns(pl.col("day").cast(pl.Datetime("ms")))
    with SinkHarness(sink=sw.sinks.console(), schema=rows.schema, pipeline="p", output="days") as job:
        job.start()
        job.deliver(rows)
    printed = capsys.readouterr().out
    assert str(2**61) in printed
    assert "days, batch 0: 2 rows" in printed
