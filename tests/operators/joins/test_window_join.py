"""Window joins, one behaviour at a time."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.plan.streams import Results, WindowedStream
from slackwater.testing import Harness
from slackwater.windows import Window
from tests.operators.joins.sides import pipeline, stream

DDL = "user string, ts long, page string"


def row(ts: int, user: str | None = "ada", page: str = "home") -> dict[str, Any]:
    return {"user": user, "ts": ts, "page": page}


def windowed(name: str, window: Window, **options: Any) -> WindowedStream:  # noqa: ANN401  the options of `window`
    return stream(name, DDL).key_by("user").window(window, **options)


def harness(window: Window | None = None, how: Any = "inner", **options: Any) -> tuple[Harness, Results]:  # noqa: ANN401
    window = sw.tumbling("10ms") if window is None else window
    results = windowed("views", window, **options).join(windowed("clicks", window, **options), how=how)
    return Harness(pipeline(results)), results


def shown(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    ends = frame["window_end"].dt.epoch("ms")
    return sorted(frame.select("ts", "ts_right").with_columns(ends).rows(), key=str)


def test_pairs_of_a_window_come_out_when_it_is_complete() -> None:
    test, results = harness()
    test.send("views", [row(1), row(9)]).send("clicks", [row(5), row(11)]).run_batch()
    assert test.run_batch()[results.name].is_empty()
    assert test.watermark == {"views": 9, "clicks": 11}
    assert shown(test.advance_watermark(10)[results.name]) == [(1, 5, 10), (9, 5, 10)]


def test_a_result_has_its_window_and_the_time_of_its_last_instant() -> None:
    test, results = harness()
    test.send("views", [row(1)]).send("clicks", [row(5, page="cart")])
    test.finish()
    [found] = test.output(results).rows(named=True)
    assert (found["user"], found["page"], found["page_right"]) == ("ada", "home", "cart")
    assert [round(found[name].timestamp() * 1000) for name in ("window_start", "window_end", "event_time")] == [
        0,
        10,
        9,
    ]


def test_rows_that_share_several_windows_meet_in_each() -> None:
    test, results = harness(sw.hopping("20ms", every="10ms"))
    test.send("views", [row(12)]).send("clicks", [row(15), row(22)])
    test.finish()
    assert shown(test.output(results)) == [(12, 15, 20), (12, 15, 30), (12, 22, 30)]


def test_a_cumulative_window_shows_what_it_has_so_far() -> None:
    test, results = harness(sw.cumulative("20ms", every="10ms"))
    test.send("views", [row(1)]).send("clicks", [row(5), row(15)])
    test.finish()
    assert shown(test.output(results)) == [(1, 15, 20), (1, 5, 10), (1, 5, 20)]


def test_days_have_the_length_that_the_calendar_gives_them() -> None:
    test, results = harness(sw.calendar("day", zone="Europe/Berlin"))
    spring = 1_774_738_800_000  # 2026-03-29 00:00 in Berlin, a day of 23 hours
    hours = [spring + 3_600_000 * hour for hour in (0, 22, 23)]
    test.send("views", [row(hours[0])]).send("clicks", [row(hours[1]), row(hours[2])])
    test.finish()
    assert test.output(results)["ts_right"].to_list() == [hours[1]]


def test_rows_of_an_outer_side_that_met_none_come_out_with_their_window() -> None:
    test, results = harness(how="full")
    test.send("views", [row(1), row(12)]).send("clicks", [row(5), row(25), row(26, None)])
    test.finish()
    assert shown(test.output(results)) == [(1, 5, 10), (12, None, 20), (None, 25, 30), (None, 26, 30)]


def test_a_row_is_padded_in_the_windows_where_it_met_none() -> None:
    test, results = harness(sw.hopping("20ms", every="10ms"), how="left")
    test.send("views", [row(15)]).send("clicks", [row(22)])
    test.finish()
    assert shown(test.output(results)) == [(15, 22, 30), (15, None, 20)]


def test_a_row_within_the_allowed_lateness_adds_its_pairs() -> None:
    test, results = harness(allowed_lateness="10ms")
    test.send("views", [row(1)]).send("clicks", [row(5)]).run_batch()
    test.advance_watermark(12)
    first = test.send("views", [row(2)]).send("clicks", [row(6)]).run_batch()
    assert shown(first[results.name]) == [(1, 6, 10), (2, 5, 10), (2, 6, 10)]
    assert test.last.counts["views.join"] == {"refired": 2, "rows": 3}
    again = test.send("clicks", [row(7)]).run_batch()
    assert shown(again[results.name]) == [(1, 7, 10), (2, 7, 10)]


def test_a_row_of_forgotten_windows_is_late_and_says_which_it_missed() -> None:
    test, results = harness(sw.hopping("20ms", every="10ms"), allowed_lateness="5ms")
    test.advance_watermark(35)
    test.send("views", [row(15), row(19), row(20)]).run_batch()
    rows = test.output(results.late).select("side", "ts", pl.col("windows").list.len()).rows()
    assert rows == [("left", 15, 2), ("left", 19, 2)]
    assert test.last.counts["views.join"]["partly_late"] == 1


def test_rows_between_windows_are_in_none() -> None:
    test, _ = harness(sw.hopping("10ms", every="20ms"), how="left")
    test.send("views", [row(15)]).run_batch()
    assert test.last.counts["views.join"] == {"no_window": 1}
    test.finish()
    assert test.pieces == 0


def test_a_window_of_your_own_can_be_joined_and_is_checked() -> None:
    class Odd(sw.windows.AlignedWindow):
        """Windows that end before times of 100 and more."""

        def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
            start = ts // 10 * 10
            return start, pl.when((ts >= 100) & (ts < 1_000)).then(start).otherwise(start + 10)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Odd)

        def __hash__(self) -> int:
            return 1

        def __str__(self) -> str:
            return "odd"

    test, results = harness(Odd())
    test.send("views", [row(1), row(101)]).send("clicks", [row(2)])
    test.finish()
    assert shown(test.output(results)) == [(1, 2, 10)]
    assert test.output("views.dead_letters").height == 1


def test_results_of_windows_can_be_joined_and_counted() -> None:
    """Counts of two streams by minute, side by side; then the minutes of an hour in which both had rows."""
    views, clicks = (stream(name, DDL) for name in ("views", "clicks"))
    counts = [
        each.key_by("user").window(sw.tumbling("10ms"), name=f"{each.name}-counted").aggregate(n=sw.count())
        for each in (views, clicks)
    ]
    both = counts[0].key_by("user").join(counts[1].key_by("user"), between=("0s", "0s"), how="full", name="both")
    total = (
        both.key_by("user")
        .window(sw.tumbling("100ms"), name="total")
        .aggregate(minutes=sw.count(), views=sw.sum("n"), clicks=sw.sum("n_right"))
    )
    late = [step.late for step in (*counts, both, total)]
    ends: list[Any] = [total, both, *late, *(each.dead_letters for each in (views, clicks))]
    test = Harness(sw.Pipeline("p", *(end.to(sw.sinks.memory()) for end in ends)))
    test.send("views", [row(1), row(2), row(15)]).send("clicks", [row(3), row(27)])
    test.finish()
    rows = test.output(both).select("window_start", "n", "n_right").with_columns(pl.col("window_start").dt.epoch("ms"))
    assert sorted(rows.rows(), key=str) == [(0, 2, 1), (10, 1, None), (None, None, 1)]
    assert test.output(total).select("user", "minutes", "views", "clicks").rows() == [("ada", 3, 3, 2)]
    assert all(test.output(each).is_empty() for each in late)
    assert test.pieces == 0


@pytest.mark.parametrize("how, lateness", [("inner", "5m"), ("left", "0s")])
def test_explain_says_what_is_kept(how: Any, lateness: str) -> None:  # noqa: ANN401
    window = sw.tumbling("1h")
    left, right = (windowed(name, window, allowed_lateness=lateness) for name in ("views", "clicks"))
    text = pipeline(left.join(right, how=how)).explain()
    assert f"join      {how}, user = user, in the same window\n" in text
    assert f"window    tumbling 1h, allowed lateness {lateness}\n" in text
    more = " and 5m more" if how == "inner" else ""
    assert f"keeps     rows of both sides until their last window is complete{more}\n" in text
    assert ("unmatched left rows come out when their window is complete" in text) == (how == "left")
