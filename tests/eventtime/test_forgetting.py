"""State may go when the watermark has passed its end by the time for which it is kept, whatever form the ends have."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.eventtime.forgetting import is_forgotten

ENDS = [MIN_MS, -1, 0, 59, 60, 61, 4_000, MAX_MS]


@pytest.mark.parametrize("watermark_ms", [MIN_MS, 0, 60, 61, 100, MAX_MS])
@pytest.mark.parametrize("kept_ms", [0, 1, 40, MAX_MS])
def test_every_form_of_ends_gets_the_same_verdict(watermark_ms: int, kept_ms: int) -> None:
    column = pl.Series("end", ENDS)
    verdicts = [is_forgotten(end, watermark_ms, kept_ms) for end in ENDS]
    assert verdicts == [end + kept_ms <= watermark_ms for end in ENDS]
    assert is_forgotten(column, watermark_ms, kept_ms).to_list() == verdicts
    assert is_forgotten(np.array(ENDS), watermark_ms, kept_ms).tolist() == verdicts
    frame = column.to_frame().with_columns(reached=pl.lit(watermark_ms, dtype=pl.Int64))
    for reached in (watermark_ms, pl.col("reached")):
        assert frame.select(is_forgotten(pl.col("end"), reached, kept_ms))["end"].to_list() == verdicts


@pytest.mark.parametrize("watermark_ms", [MIN_MS, -1, 0, 3, MAX_MS])
def test_unsigned_ends_are_compared_with_any_watermark(watermark_ms: int) -> None:
    ends = np.array([0, 3, 1 << 31], dtype=np.uint32)
    assert is_forgotten(ends, watermark_ms).tolist() == [end <= watermark_ms for end in ends.tolist()]
