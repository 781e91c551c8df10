"""What a match is: its rows, its time, where the next one begins, and what results show of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.times import TIMESTAMP
from slackwater.operators.patterns import Pattern, search
from tests.operators.patterns.matched import Matched, letters, matches, ms, row

AB = sw.sequence(a="kind = 'a'", b="kind = 'b'", within="10ms")


def steps(text: str, **options: Any) -> Pattern:  # noqa: ANN401  as `sequence` takes them
    return sw.sequence({word: f"kind = '{word[0]}'" for word in text.split()}, within="1h", **options)


def test_a_match_may_be_as_long_as_within_and_no_longer() -> None:
    assert matches(AB, [row("a", 0), row("b", 10)]) == ["a b"]
    assert matches(AB, [row("a", 0), row("b", 11)]) == []


def test_rows_are_taken_in_the_order_of_event_time() -> None:
    assert matches(AB, [row("b1", 5), row("a", 3), row("b2", 4), row("b3", 2)]) == ["a b2"]


def test_rows_of_one_time_are_taken_by_partition_and_offset() -> None:
    step = Matched(steps("a b"))
    step.add(row("b1", 0), row("a1", 0), partition="1")
    step.add(row("a2", 0), row("b2", 0), partition="0")
    assert step.finish() == ["a2 b2"]


def test_keys_are_apart_and_null_is_one() -> None:
    rows = [row("a1", 0, key="x"), row("a2", 1, key=None), row("b1", 2, key=None), row("b2", 3, key="x")]
    assert sorted(matches(AB, rows)) == ["a1 b2", "a2 b1"]


def test_a_condition_that_is_null_is_not_met() -> None:
    pattern = sw.sequence(a="price > 1", b="price > 1", within="1h")
    assert matches(pattern, [row("a", 0, price=2), row("x", 1), row("b", 2, price=3)]) == ["a b"]


def test_strict_rows_follow_each_other_directly() -> None:
    assert matches(steps("a b", contiguity="strict"), letters("a x b a b")) == ["a b"]


def test_a_row_of_another_key_does_not_come_between() -> None:
    rows = [row("a", 0), row("x", 1, key="other"), row("b", 2)]
    assert matches(steps("a b", contiguity="strict"), rows) == ["a b"]


def test_a_step_leaves_a_row_to_the_next_one_only_where_it_must() -> None:
    pattern = sw.sequence({"any+": "true"}, b="kind = 'b'", within="1h")
    assert matches(pattern, letters("x b1 y b2 z")) == ["x b1 y b2"]


def test_a_step_that_cannot_complete_an_optional_one_ends_before_it() -> None:
    pattern = sw.sequence(a="kind = 'a'", b=sw.step("kind = 'b'", at_least=2, at_most=3, optional=True), within="1h")
    assert matches(pattern, letters("a b1")) == ["a"]
    assert matches(pattern, letters("a b1 b2 b3 b4")) == ["a b1 b2 b3"]


def test_optional_first_steps_may_be_left_out() -> None:
    assert matches(steps("a? b", skip="next_row"), letters("a b1 b2")) == ["a b1", "b1", "b2"]


def test_times_looks_for_so_many_rows() -> None:
    pattern = sw.times(failed="kind = 'f'", n=3, within="5s")
    assert matches(pattern, letters("f1 f2 x f3 f4 f5 x x x x f6 f7")) == ["f1 f2 f3"]
    assert matches(sw.times(failed="kind = 'f'", n=1, within="5s"), letters("f1 x f2")) == ["f1", "f2"]


def test_the_same_row_is_in_one_match_or_in_several() -> None:
    assert matches(sw.times(f="kind = 'f'", n=2, within="1h"), letters("f1 f2 f3")) == ["f1 f2"]
    every = sw.times(f="kind = 'f'", n=2, within="1h", skip="next_row")
    assert matches(every, letters("f1 f2 f3")) == ["f1 f2", "f2 f3"]


def test_rows_passed_over_begin_no_match_before_the_last_row() -> None:
    assert matches(steps("a b"), letters("a1 a2 b1 b2")) == ["a1 b1"]


def test_a_condition_may_refer_to_an_earlier_row() -> None:
    pattern = sw.sequence(small="price < 10", large="price > 10 * small.price", within="1h")
    rows = [row("s1", 0, price=5), row("s2", 1, price=2), row("l", 2, price=30)]
    assert matches(pattern, rows) == ["s2 l"]


def test_a_condition_refers_to_the_last_row_of_a_repeated_step() -> None:
    pattern = sw.sequence({"low{2}": "price < 10"}, high="price > 10 * low.price", within="1h")
    rows = [row("l1", 0, price=1), row("l2", 1, price=3), row("h1", 2, price=20), row("h2", 3, price=31)]
    assert matches(pattern, rows) == ["l1 l2 h2"]


def test_a_reference_to_a_step_that_was_left_out_is_null() -> None:
    pattern = sw.sequence({"a": "kind = 'a'", "b?": "kind = 'b'"}, c="b.price is null and kind = 'c'", within="1h")
    assert matches(pattern, letters("a c")) == ["a c"]
    assert matches(pattern, [row("a", 0), row("b", 1, price=1), row("c", 2)]) == []


def test_references_in_polars_expressions_are_fields_of_the_step() -> None:
    large = pl.col("price") > 10 * pl.col("small").struct.field("price")
    pattern = sw.sequence(small="price < 10", large=large, within="1h")
    assert matches(pattern, [row("s", 0, price=2), row("l", 1, price=21)]) == ["s l"]


def test_references_over_more_rows_than_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_PAIRS", 16)
    pattern = sw.sequence(small="price < 3", large="price = 100 + small.price", within="1h")
    rows = [row(f"s{at}", at, price=at) for at in range(3)]
    rows += [row(f"x{at}", at, price=50) for at in range(3, 60)]
    rows += [row(f"l{at}", 60 + at, price=102 - at) for at in range(3)]
    assert matches(pattern, rows) == ["s0 l2"]


def test_results_have_the_key_the_columns_of_each_step_and_three_times() -> None:
    step = Matched(steps("a b+ c?"))
    assert dict(step.rows().schema) == {
        "key": pl.String,
        **{f"a_{name}": dtype for name, dtype in OWN.items()},
        **{f"b_{name}": pl.List(dtype) for name, dtype in OWN.items()},
        "b_count": pl.Int64,
        **{f"c_{name}": dtype for name, dtype in OWN.items()},
        "first_time": TIMESTAMP,
        "last_time": TIMESTAMP,
        "event_time": TIMESTAMP,
    }


OWN = {"ts": pl.Int64, "kind": pl.String, "name": pl.String, "price": pl.Int64}


def test_a_repeated_step_gives_lists_and_one_that_was_left_out_nothing() -> None:
    step = Matched(steps("a b* c? d"))
    step.add(*letters("a b1 b2 d"), *(dict(each, key="other") for each in letters("a c d")))
    step.finish()
    found = step.rows().sort("key").select("a_name", "b_name", "b_count", "c_name", "d_name").rows()
    assert found == [("a", ["b1", "b2"], 2, None, "d"), ("a", [], 0, "c", "d")]


def test_the_time_of_a_match_is_that_of_its_last_row() -> None:
    step = Matched(AB)
    step.add(row("a", 2), row("b", 7))
    step.finish()
    assert [ms(moment) for moment in step.rows().select("first_time", "last_time", "event_time").row(0)] == [2, 7, 7]


@pytest.mark.parametrize(
    "name, least, most, is_optional",
    [
        ("f", 1, 1, False),
        ("f?", 1, 1, True),
        ("f*", 1, None, True),
        ("f+", 1, None, False),
        ("f{3}", 3, 3, False),
        ("f{3,}", 3, None, False),
        ("f{3,5}", 3, 5, False),
        ("f{,5}", 1, 5, True),
        ("f{0,5}", 1, 5, True),
        ("f {3, 5}", 3, 5, False),
    ],
)
def test_a_number_of_rows_may_be_written_with_the_name(
    name: str, least: int, most: int | None, is_optional: object
) -> None:
    found = sw.sequence({"a": "true", name: "kind = 'f'"}, within="1h").steps[1]
    assert (found.name, found.least, found.most, found.is_optional) == ("f", least, most, is_optional)


@pytest.mark.parametrize(
    "options, least, most, is_optional",
    [
        ({}, 1, 1, False),
        ({"optional": True}, 1, 1, True),
        ({"at_least": 3}, 3, None, False),
        ({"at_most": 5}, 1, 5, False),
        ({"at_least": 3, "at_most": 5, "optional": True}, 3, 5, True),
        ({"at_least": 0}, 1, None, True),
    ],
)
def test_a_number_of_rows_may_be_written_with_the_condition(
    options: dict[str, Any], least: int, most: int | None, is_optional: object
) -> None:
    found = sw.sequence(a="true", f=sw.step("kind = 'f'", **options), within="1h").steps[1]
    assert (found.least, found.most, found.is_optional) == (least, most, is_optional)


@pytest.mark.parametrize("name", ["f", "f?", "f*", "f+", "f{3}", "f{3,}", "f{3,5}", "f{0,5}"])
def test_a_pattern_is_shown_as_it_is_written(name: str) -> None:
    pattern = sw.sequence({"a": "true", name: "x > 1"}, within="1m30s")
    assert str(pattern) == f"a: true → {name}: x > 1 within 1m30s"


@pytest.mark.parametrize(
    "pattern, said",
    [
        (sw.sequence(a="true", b="true", within="1m"), "when the watermark passes the last row"),
        (
            sw.sequence({"a": "true", "b+": "true"}, within="1m"),
            "at the latest when the watermark passes the first row by 1m: until then b may still take rows",
        ),
        (
            sw.sequence({"a?": "true", "b": "true"}, within="1m"),
            (
                "at the latest when the watermark passes the first row by 1m: until then other rows may still make a "
                "better match"
            ),
        ),
        (sw.absent(after="true", expect="true", within="1m"), "when the watermark passes the row by 1m"),
    ],
    ids=["fixed", "a last step that repeats", "an optional step", "an absence"],
)
def test_explain_says_how_long_a_result_may_wait(pattern: Pattern, said: str) -> None:
    assert f"results   {said}\n" in Matched(pattern).pipeline.explain()
