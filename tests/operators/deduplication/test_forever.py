"""Keys that are kept for good stay, whatever the sign of their times."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.operators.deduplication.spec import Keep
from slackwater.testing import Harness


@pytest.mark.parametrize("keep", ["first", "first_by_time", "last_by_time"])
@pytest.mark.parametrize("base", [-10_000, 10_000], ids=["before 1970", "after"])
def test_keys_kept_for_good_stay_to_the_end_of_time(base: int, keep: Keep) -> None:
    rows = sw.stream("events", sw.testing.rows_source("k string, t long")).event_time("t")
    kept = rows.key_by("k").deduplicate(within=sw.FOREVER, keep=keep)
    ends = kept.to(sw.sinks.memory()), kept.duplicates.drop(), kept.late.drop(), rows.dead_letters.drop()
    harness = Harness(sw.Pipeline("p", *ends, key_groups=1))
    for number in range(4):
        harness.send("events", [{"k": str(number), "t": base + number}]).run_batch()
    harness.send("events", [{"k": "0", "t": base + 50_000}]).run_batch()
    harness.finish()
    assert harness.pieces > 0
    assert set(harness.output(kept)["k"]) == {"0", "1", "2", "3"}
    if keep != "last_by_time":
        assert harness.output(kept).height == 4
