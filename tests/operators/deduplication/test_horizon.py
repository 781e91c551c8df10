"""A key is forgotten when the watermark is past its row by more than `within`, to the millisecond.

row of k at 0      within = 10 s
|------------------------------|.
watermark here: k is a repeat  ^ ^ here: k is new
"""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.operators.deduplication.spec import Keep
from slackwater.testing import Harness

WITHIN_MS = 10_000


@pytest.mark.parametrize("stored", [False, True], ids=["row before", "row and its piece before"])
@pytest.mark.parametrize("keep", ["first", "first_by_time", "last_by_time"])
@pytest.mark.parametrize("past_ms, is_known", [(0, True), (1, False)])
def test_key_is_known_until_the_watermark_is_past_its_row_by_within(
    keep: Keep, *, past_ms: int, is_known: bool, stored: bool
) -> None:
    rows = sw.stream("events", sw.testing.rows_source("k string, t long")).event_time("t")
    kept = rows.key_by("k").deduplicate(within=f"{WITHIN_MS}ms", keep=keep)
    ends = kept.to(sw.sinks.memory()), kept.duplicates.drop(), kept.late.drop(), rows.dead_letters.drop()
    harness = Harness(sw.Pipeline("p", *ends, key_groups=1))
    harness.send("events", [{"k": "a", "t": 0}]).run_batch()
    if stored:
        harness.advance_watermark(WITHIN_MS // 2)
    harness.advance_watermark(WITHIN_MS + past_ms)
    harness.send("events", [{"k": "a", "t": WITHIN_MS + past_ms}]).run_batch()
    harness.finish()
    found = harness.output(kept)
    if keep == "last_by_time":
        assert found.height == (3 if is_known else 2), "with a retraction of the row that is known"
    else:
        assert found.height == (1 if is_known else 2)


def test_first_row_by_time_comes_out_when_no_row_of_the_same_time_can_come() -> None:
    rows = sw.stream("events", sw.testing.rows_source("k string, t long")).event_time("t")
    kept = rows.key_by("k").deduplicate(within="1h", keep="first_by_time")
    ends = kept.to(sw.sinks.memory()), kept.duplicates.drop(), kept.late.drop(), rows.dead_letters.drop()
    harness = Harness(sw.Pipeline("p", *ends, key_groups=1))
    harness.send("events", [{"k": "a", "t": 5}]).run_batch()
    harness.advance_watermark(5)
    assert harness.output(kept).is_empty(), "a row at 5 is not late yet"
    harness.advance_watermark(6)
    assert harness.output(kept).height == 1
