"""Sessions that end by their maximum length, before the gap after their last row is over."""

from __future__ import annotations

import slackwater as sw
from slackwater.testing import Harness


def test_row_that_comes_to_a_complete_session_corrects_it_though_its_own_interval_is_open() -> None:
    """Rows at 0, 8 and 16 s are one session, cut at 20 s; at 22 s it is complete, and a row of 15 s is in it.

    time       0       8       16  20 22  25
    session    [...................)            complete
    row                      [............)     15 s and its gap
    """
    rows = sw.stream("rows", sw.testing.rows_source("id long, ts long")).event_time("ts")
    visits = rows.key_by("id").window(
        sw.session("10s", max_length="20s"), allowed_lateness="1m", accumulation="retracting", name="visits"
    )
    counted = visits.aggregate(n=sw.count())
    memory = sw.sinks.memory()
    harness = Harness(sw.Pipeline("p", counted.to(memory), counted.late.drop(), rows.dead_letters.drop()))
    harness.send("rows", [{"id": 1, "ts": ts} for ts in (0, 8_000, 16_000)]).run_batch()
    harness.advance_watermark(22_000)
    shown = harness.send("rows", [{"id": 1, "ts": 15_000}]).run_batch()["visits"]
    assert shown.select("n", "pane", "is_retraction").rows() == [(3, "late", True), (4, "late", False)]
    counts = harness.last.counts["visits"]
    assert (counts["refired"], counts["on_time"]) == (1, 0)
