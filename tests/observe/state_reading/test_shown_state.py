"""What each kind of keyed step says of its state: as users would want to read it, and of one key alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.operators.deduplication.spec import Keep
from slackwater.windows import Window
from tests.observe.state_reading.held import at, events, harness, row

Batches = list[list[dict[str, Any]]]
TWO = [[row("ada", 0), row("bob", 5), row("ada", 20, v=2.0)], [row("ada", 30, v=4.0), row("bob", 70)]]


def held(window: Window, batches: Batches = TWO, **options: Any) -> sw.testing.Harness:  # noqa: ANN401  as window's
    stream = events()
    results = stream.key_by("user").window(window, name="step", **options).aggregate(n=sw.count(), total=sw.sum("v"))
    return harness(stream, results, batches)


def test_window_has_its_bounds_and_its_result_so_far() -> None:
    state = held(sw.tumbling("1m"), allowed_lateness="1h").state("step", key="ada")
    assert state.to_dicts() == [
        {
            "user": "ada",
            "window_start": at(0),
            "window_end": at(60),
            "panes_shown": 0,
            "rows_since_pane": 3,
            "n": 3,
            "total": 7.0,
        }
    ]


def test_window_that_was_shown_says_how_often() -> None:
    state = held(sw.tumbling("1m"), [*TWO, []], allowed_lateness="1h").state("step", key="ada")
    assert state.select("panes_shown", "rows_since_pane", "n").rows() == [(1, 0, 3)]


def test_windows_of_all_keys_are_in_the_order_of_keys_and_times() -> None:
    state = held(sw.tumbling("1m"), allowed_lateness="1h").state("step")
    assert state.select("user", "window_start", "n").rows() == [
        ("ada", at(0), 3),
        ("bob", at(0), 1),
        ("bob", at(60), 1),
    ]


def test_step_is_found_by_its_results_too() -> None:
    stream = events()
    results = stream.key_by("user").window(sw.tumbling("1m")).aggregate(n=sw.count())
    assert harness(stream, results, TWO).state(results)["user"].to_list() == ["ada", "bob", "bob"]


@pytest.mark.parametrize("max_length", [None, "10m"])
def test_parts_of_a_session_are_shown_as_one(max_length: str | None) -> None:
    state = held(sw.session("1m", max_length=max_length)).state("step")
    bounds = [("ada", at(0), at(90), 3, 7.0), ("bob", at(5), at(65), 1, 1.0), ("bob", at(70), at(130), 1, 1.0)]
    assert state.select("user", "window_start", "window_end", "n", "total").rows() == bounds


def test_session_that_is_too_long_is_shown_as_it_will_be_cut() -> None:
    rows = [row("ada", seconds) for seconds in (0, 50, 100, 150)]
    state = held(sw.session("1m", max_length="2m"), [rows]).state("step")
    assert state.select("window_start", "window_end", "n").rows() == [(at(0), at(120), 3), (at(150), at(210), 1)]


def test_sliding_window_holds_instants_with_their_own_events() -> None:
    state = held(sw.sliding("1m")).state("step", key="ada")
    assert state.select("event_time", "total").rows() == [(at(0), 1.0), (at(20), 2.0), (at(30), 4.0)]


def test_global_window_has_no_bounds() -> None:
    state = held(sw.global_window(), trigger=sw.after_count(100)).state("step", key="ada")
    assert state.select("window_start", "window_end", "n").rows() == [(None, None, 3)]


def test_count_window_says_how_full_it_is_and_a_full_one_leaves_the_counter() -> None:
    stream = events()
    results = stream.key_by("user").window(sw.count_window(2), name="step").aggregate(total=sw.sum("v"))
    state = harness(stream, results, TWO, late=False).state("step")
    columns = ("user", "window_index", "rows", "rows_seen", "total", "event_time")
    assert state.select(columns).rows() == [("ada", 1, 1, 3, 4.0, at(30)), ("bob", None, None, 2, None, None)]


def test_result_that_cannot_be_computed_is_null_and_the_rest_is_there() -> None:
    stream = sw.stream("events", sw.testing.rows_source("user string, v long, t timestamp")).event_time("t")
    window = stream.key_by("user").window(sw.tumbling("1m"), name="step")
    results = window.aggregate(n=sw.count(), total=sw.sum("v"))
    rows = [[{"user": "ada", "v": (1 << 63) - 1, "t": at(second)}] for second in (0, 1)]
    state = harness(stream, results, rows).state("step")
    assert state.select("n", "total").rows() == [(2, None)]


@pytest.mark.parametrize(
    "keep, kept", [("first", None), ("first_by_time", (True, None)), ("last_by_time", (True, 4.0))]
)
def test_deduplication_says_until_when_a_key_is_remembered(keep: Keep, kept: tuple[bool, float | None] | None) -> None:
    stream = events()
    results = stream.key_by("user").deduplicate(keep=keep, within="1h", name="step")
    work = harness(stream, results, TWO, duplicates=results.duplicates.drop())
    state = work.state("step", key="ada")
    first = 30 if keep == "last_by_time" else 0
    assert state.select("user", "event_time", "remembered_until").rows() == [("ada", at(first), at(first + 3600))]
    if kept is not None:
        assert state.select("is_shown", "v").rows() == [kept]
    assert work.state("step").height == 2


class Basket(sw.Process):
    last = sw.value_state(pl.Float64, ttl="1h")
    seen = sw.list_state("at long, v double", ttl="1h")
    shops = sw.set_state("long", ttl="1h")
    by_shop = sw.map_state("long", "double", ttl="1h", clock="processing")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        self.last.set(event["v"])
        self.seen.add({"at": len(self.seen), "v": event["v"]})
        self.shops.add(event["shop"])
        self.by_shop.set(event["shop"], event["v"])
        ctx.set_timer(ctx.event_time + sw.duration("30m"), name="close")

    def on_timer(self, when: datetime, ctx: sw.Context) -> None:
        """Nothing is done."""


def test_process_shows_its_state_by_declared_names_and_its_timers() -> None:
    stream = events()
    results = stream.key_by("user").process(Basket(), output="x long", name="step")
    batches = [[row("ada", 0), row("bob", 1)], [row("ada", 60, v=2.0, shop=7)]]
    [state] = harness(stream, results, batches, late=False).state("step", key="ada").to_dicts()
    assert state == {
        "user": "ada",
        "timers": [{"at": at(60 + 1800), "name": "close", "clock": "event"}],
        "oldest_write": at(0),
        "last": 2.0,
        "seen": [{"at": 0, "v": 1.0}, {"at": 1, "v": 2.0}],
        "shops": [1, 7],
        "by_shop": [{"key": 1, "value": 1.0}, {"key": 7, "value": 2.0}],
    }


def test_process_in_the_order_of_event_time_shows_the_events_that_wait() -> None:
    stream = events()
    results = stream.key_by("user").process(Basket(), output="x long", name="step", order="event_time")
    state = harness(stream, results, [[row("ada", 0), row("ada", 60)], []]).state("step")
    assert state.select("user", "last", "event_time").rows() == [("ada", 1.0, None), ("ada", None, at(60))]
    assert state["waiting_event"].to_list() == [None, row("ada", 60)]


def test_pattern_shows_the_rows_that_a_match_may_need() -> None:
    stream = events()
    results = stream.key_by("user").match(sw.sequence(low="v < 2", high="v > 3", within="5m"), name="step")
    state = harness(stream, results, [[row("ada", 0), row("bob", 5)]]).state("step", key="ada")
    assert state.to_dicts() == [row("ada", 0) | {"event_time": at(0)}]


def test_interval_join_shows_the_rows_of_both_sides() -> None:
    left, right = events("left"), events("right")
    other = right.select("shop", buyer="user", price="v").key_by("buyer")
    results = left.key_by("user").join(other, between=("0s", "1h"), how="left", name="step")
    work = harness(left, results, [], right=right.dead_letters.drop())
    work.send("left", [row("ada", 0), row("bob", 1)]).send("right", [row("ada", 10, v=9.0)])
    work.run_batch()
    state = work.state("step", key="ada")
    assert state.select("user", "side", "event_time", "is_matched", "v", "price").rows() == [
        ("ada", "left", at(0), True, 1.0, None),
        ("ada", "right", at(10), None, None, 9.0),
    ]
    assert work.state("step").height == 3


def test_join_of_rows_with_a_column_called_side_shows_both() -> None:
    stream = events()
    rows = stream.select("user", side="v")
    results = rows.key_by("user").join(stream.key_by("user"), between=("0s", "1h"), late="process", name="step")
    state = harness(stream, results, [[row("ada", 0, v=7.0)]], late=False).state("step")
    assert sorted(state.select("side_", "side").rows()) == [("left", 7.0), ("right", None)]


def test_as_of_join_shows_waiting_rows_and_versions() -> None:
    left, right = events("left"), events("right")
    results = left.key_by("user").join_as_of(right.key_by("user"), versions_ttl="1h", deleted="v < 0", name="step")
    work = harness(left, results, [], right=right.dead_letters.drop())
    work.send("left", [row("ada", 50)]).send("right", [row("ada", 10, v=3.0), row("ada", 20, v=-1.0)])
    work.run_batch()
    shown = work.state("step", key="ada").select("side", "event_time", "is_deletion")
    assert shown.rows() == [("right", at(10), False), ("right", at(20), True), ("left", at(50), None)]


def test_window_join_shows_rows_with_their_own_times() -> None:
    left, right = events("left"), events("right")
    windows = [stream.key_by("user").window(sw.tumbling("1m")) for stream in (left, right)]
    results = windows[0].join(windows[1], name="step")
    work = harness(left, results, [], right=right.dead_letters.drop())
    work.send("left", [row("ada", 10)]).send("right", [row("ada", 20)])
    work.run_batch()
    assert work.state("step").select("side", "event_time").rows() == [("left", at(10)), ("right", at(20))]


def test_state_is_as_it_was_after_it_was_looked_at() -> None:
    work = held(sw.session("1m"))
    before = {place: dict(blobs) for place, blobs in work.engine.state.items()}
    work.state("step")
    work.state("step", key="ada")
    assert work.engine.state == before


def test_key_of_many_is_found_in_its_bucket() -> None:
    stream = events()
    results = stream.key_by("user").process(Basket(), output="x long", name="step")
    rows = [row(f"user {number}", number / 100, v=float(number)) for number in range(5000)]
    work = harness(stream, results, [rows], late=False)
    assert work.state("step", key="user 1234")["last"].to_list() == [1234.0]
    assert work.state("step").height == 5000


def test_step_that_holds_nothing_has_its_columns_all_the_same() -> None:
    state = held(sw.tumbling("1m"), []).state("step")
    assert (state.height, state.columns[:3]) == (0, ["user", "window_start", "window_end"])


def test_unknown_step_is_refused_with_the_near_miss() -> None:
    with pytest.raises(DefinitionError, match=r"\[STEP_UNKNOWN\] .* got `stop` \(did you mean `step`\?\)"):
        held(sw.tumbling("1m")).state("stop")
