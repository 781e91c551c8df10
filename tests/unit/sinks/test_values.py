"""Values at the edge of what a sink can write: they have a text, or an error that names the column."""

from __future__ import annotations

import json
from datetime import time, timedelta
from pathlib import Path

import polars as pl
import pytest

from slackwater.errors import RunError
from slackwater.sinks.base import SinkBatch, Slot
from slackwater.sinks.files import files
from slackwater.sinks.redis.rows import Hashes
from slackwater.testing import SinkHarness


@pytest.mark.parametrize("nested", [False, True])
def test_value_that_has_no_text_is_named_with_its_sink_output_and_column(tmp_path: Path, *, nested: bool) -> None:
    never = pl.Series("at", [0, 2**63 - 1]).cast(pl.Datetime("us", "UTC"))
    rows = pl.DataFrame({"id": [1, 2], "at": never})
    rows = rows.with_columns(at=pl.struct(when="at")) if nested else rows
    sink = files(tmp_path, format="json")
    with pytest.raises(RunError, match=r"SINK_VALUE.*of output `test` cannot write `at` in batch 0: .*range"):
        SinkHarness(sink=sink, schema=rows.schema, output="test").deliver(rows)


def test_durations_and_times_of_day_have_a_text_in_redis() -> None:
    rows = pl.DataFrame({"user": ["ann"], "took": [timedelta(seconds=90)], "at": [time(12, 30)]})
    batch = SinkBatch(batch=0, schema=rows.schema, rows=1, frames=lambda: iter([rows]))
    hashes = Hashes(key=("user",), columns=None, prefix=None)
    [chunk] = hashes.chunks(batch, Slot(pipeline="p", output="o", schema=rows.schema), reserved="slackwater:")
    assert json.loads(chunk) == {"key": ["ann"], "gone": [False], "1": ["PT1M30S"], "2": ["12:30:00"]}
