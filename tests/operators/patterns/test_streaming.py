"""When matches are shown, what the state holds until then, and what becomes of late rows and rows that fail."""

from __future__ import annotations

import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.state import store as memory
from tests.operators.patterns.matched import Matched, ms, row

AB = sw.sequence(a="kind = 'a'", b="kind = 'b'", within="10ms")


def test_a_match_is_shown_when_the_watermark_has_passed_its_last_row() -> None:
    step = Matched(AB)
    step.add(row("a", 0), row("b", 5))
    assert step.advance(5) == []
    assert step.advance(6) == ["a b"]
    assert step.finish() == []


def test_a_row_that_comes_later_may_be_earlier() -> None:
    step = Matched(AB)
    step.add(row("a1", 1), row("b", 5))
    step.advance(1)
    step.add(row("a0", 1))
    step.add(row("b0", 3))
    assert step.finish() == ["a1 b0"]


def test_a_step_that_may_take_one_row_more_waits_for_the_end_of_its_time() -> None:
    step = Matched(sw.sequence({"a": "kind = 'a'", "b+": "kind = 'b'"}, within="10ms"))
    step.add(row("a", 0), row("b1", 5))
    assert step.advance(10) == []
    assert step.add(row("b2", 10)) == []
    assert step.advance(11) == ["a b1 b2"]


def test_a_strict_match_ends_with_the_row_that_breaks_it() -> None:
    step = Matched(sw.sequence({"a+": "kind = 'a'"}, within="1h", contiguity="strict"))
    step.add(row("a1", 0), row("a2", 1), row("x", 2))
    assert step.advance(2) == []
    assert step.advance(3) == ["a1 a2"]


def test_an_earlier_row_that_may_still_match_holds_back_a_later_match() -> None:
    pattern = sw.sequence(small="kind = 's'", large="price > 10 * small.price", within="10ms")
    rows = [row("s1", 0, price=9), row("s2", 1, price=1), row("l", 2, price=20)]
    step = Matched(pattern)
    step.add(*rows)
    assert step.advance(9) == []
    assert step.advance(11) == ["s2 l"]
    step = Matched(pattern)
    step.add(*rows, row("m", 10, price=91))
    assert step.finish() == ["s1 m"]


def test_every_row_begins_its_own_match_where_rows_may_be_in_several() -> None:
    pattern = sw.sequence(small="kind = 's'", large="price > 10 * small.price", within="10ms", skip="next_row")
    step = Matched(pattern)
    step.add(row("s1", 0, price=9), row("s2", 1, price=1), row("l", 2, price=20))
    assert step.advance(3) == ["s2 l"]
    assert step.advance(9) == []
    assert step.finish() == []


def test_an_absence_is_shown_when_its_time_is_over() -> None:
    step = Matched(sw.absent(after="kind = 'a'", expect="kind = 'b'", within="10ms"))
    step.add(row("a1", 0), row("a2", 20))
    assert step.advance(10) == []
    assert step.advance(11) == ["a1"]
    found = step.rows().select("first_time", "last_time", "event_time").row(0)
    assert [ms(moment) for moment in found] == [0, 0, 10]
    assert step.rows().columns == [
        "key",
        *("after_ts", "after_kind", "after_name", "after_price"),
        *("first_time", "last_time", "event_time"),
    ]


@pytest.mark.parametrize("at, found", [(10, []), (11, ["a"])])
def test_a_row_that_comes_at_the_very_end_is_not_absent(at: int, found: list[str]) -> None:
    step = Matched(sw.absent(after="kind = 'a'", expect="kind = 'b'", within="10ms"))
    step.add(row("a", 0), row("b", at))
    assert step.finish() == found


def test_an_expected_row_belongs_to_the_row_it_refers_to() -> None:
    expect = "kind = 'p' and price = after.price"
    step = Matched(sw.absent(after="kind = 'o'", expect=expect, within="10ms"))
    step.add(row("o1", 0, price=1), row("o2", 1, price=2), row("p", 2, price=2))
    assert step.finish() == ["o1"]


def test_a_row_behind_the_watermark_is_late() -> None:
    step = Matched(AB)
    step.advance(5)
    step.add(row("a", 4), row("a", 5))
    late = step.harness.output(step.results.late)
    assert late.select("name", "late_by_ms", "step").rows() == [("a", 1, "events.match")]
    assert [ms(moment) for moment in late.select("event_time", "watermark").row(0)] == [4, 5]
    assert step.harness.last.counts["events.match"] == {"late": 1, "on_time": 1}


def test_a_row_on_which_a_condition_fails_is_a_dead_letter() -> None:
    number = pl.col("name").cast(pl.Int64)
    step = Matched(sw.sequence(a=number == 1, b=number == 2, within="10ms"))
    step.add(row("1", 0), row("x", 1), row("2", 2))
    assert step.finish() == ["1 2"]
    dead = step.harness.output(step.dead_letters)
    assert dead.select("reason", "step").rows() == [("failed", "events.match")]


def test_a_row_on_which_a_later_condition_would_fail_is_a_dead_letter() -> None:
    number = pl.col("o").struct.field("name").cast(pl.Int64)
    step = Matched(sw.sequence(o="kind in ('1', 'x')", p=pl.col("price") == number, within="10ms"))
    step.add(row("x", 0), row("1", 1), row("y", 2, price=1))
    assert step.finish() == ["1 y"]
    dead = step.harness.output(step.dead_letters)
    assert dead["offset"].to_list() == [0]


def test_rows_that_no_step_can_take_are_not_stored_but_counted() -> None:
    step = Matched(AB)
    step.add(row("x", 0), row("y", 1))
    assert step.harness.last.counts["events.match"] == {"on_time": 2}
    assert step.state_rows() == 0


def test_the_state_holds_the_rows_of_the_last_within_of_a_key_and_no_others() -> None:
    step = Matched(sw.sequence({"a": "kind = 'a'", "b+": "kind = 'b'", "c": "kind = 'c'"}, within="10ms"))
    for at in range(0, 200, 2):
        step.add(row("a" if at % 4 else "b", at))
        step.advance(at + 1)
        assert step.state_rows() <= 7
    step.finish()
    assert step.harness.pieces == 0


def test_rows_before_an_open_match_are_forgotten() -> None:
    step = Matched(AB)
    step.add(row("b", 0), row("a", 5), row("b", 9))
    step.advance(6)
    assert step.state_rows() == 2


def test_a_batch_reads_the_rows_of_the_keys_it_touches_or_wakes_and_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Matched(sw.sequence(a="kind = 'a'", b="kind = 'b'", within="1h"))
    step.add(*(row("a", at, key=f"key{at}") for at in range(20_000)))
    step.advance(20_000)
    held = sum(len(blob) for blobs in step.harness.engine.state.values() for blob in blobs.values())
    read, get = list[int](), memory.DictStore.get

    def counted(store: memory.DictStore, key: str) -> bytes | None:
        blob = get(store, key)
        read.append(0 if blob is None or key == "index" else len(blob))
        return blob

    monkeypatch.setattr(memory.DictStore, "get", counted)
    step.add(row("b", 30_000, key="key7"))
    assert sum(read) == 0
    assert step.advance(40_000) == ["a b"]
    assert 0 < sum(read) < held / 20


def test_matches_come_in_the_order_of_their_keys_and_first_rows() -> None:
    step = Matched(sw.times(f="kind = 'f'", n=1, within="1ms"))
    step.add(row("f4", 4, key="y"), row("f1", 1, key="y"), row("f3", 3, key="x"), row("f2", 2, key="x"))
    assert step.finish() == ["f2", "f3", "f1", "f4"]


@pytest.mark.parametrize("prices", [[1, 3, 1], [1, 3, 5]])
def test_a_way_without_the_optional_step_is_not_lost_while_the_one_with_it_waits(prices: list[int]) -> None:
    pattern = sw.sequence({"a?": "true", "b": "price < 3", "c": "price > b.price"}, within="100ms")
    step = Matched(pattern)
    step.add(*(row(f"r{at}", at, price=price) for at, price in enumerate(prices)))
    assert step.advance(2) == []
    assert step.finish() == ["r0 r1"]
