"""Every bad pattern is refused, when it is written or when the pipeline is built, with its own code and words."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import slackwater
from slackwater.base.errors import DefinitionError

sw: Any = slackwater  # untyped: half of these definitions are wrong in their types
DDL = "card string, ts long, amount double, ok boolean, count long, place struct<city: string>"


def built(pattern: Any, ddl: str = DDL, key: str = "card") -> Any:  # noqa: ANN401  as above
    """Build a pipeline that looks for a pattern."""
    payments = sw.stream("payments", sw.testing.rows_source(ddl)).event_time("ts")
    found = payments.key_by(key).match(pattern)
    ends = [found.to(sw.sinks.memory()), found.late.drop(), payments.dead_letters.drop()]
    return sw.Pipeline("p", *ends)


def seq(*steps: Any, **more: Any) -> Any:  # noqa: ANN401
    return sw.sequence(*steps, **{"within": "1m", **more})


BAD: list[tuple[str, str, str, Callable[[], Any]]] = [
    ("no steps", "PATTERN_EMPTY", "at least one step; got none", seq),
    ("an empty dictionary of steps", "PATTERN_EMPTY", "write, for example, sw.sequence(small=", lambda: seq({})),
    ("steps that are a list", "PATTERN_STEPS", "got ['amount < 1']", lambda: seq(["amount < 1"])),
    ("a pattern that is a condition", "NOT_A_PATTERN", "got 'amount < 1'; use sw.sequence(", lambda: built("amount < 1")),
    ("a condition that is a number", "EXPRESSION_KIND", "got 3", lambda: seq(a=3)),
    ("SQL that cannot be read", "EXPRESSION_SQL", "check quotes", lambda: seq(a="amount > ")),
    ("an unknown column", "UNKNOWN_COLUMN", "got `amuont` in `payments.match, pattern step a` (did you mean `amount`?); the rows there have card, ts,", lambda: built(seq(a="amuont > 1"))),
    ("an unknown column of an earlier row", "UNKNOWN_COLUMN", "got `a.amuont` in `payments.match, pattern step b` (did you mean `a.amount`?); the rows there have a.card, a.ts,", lambda: built(seq(a="ok", b="amount > a.amuont"))),
    ("a condition that is no truth value", "PREDICATE_TYPE", "of type Float64 in `payments.match, pattern step a`", lambda: built(seq(a="amount"))),
    ("a condition on other rows", "EXPRESSION_NOT_A_ROW_VALUE", "in `payments.match, pattern step a`", lambda: built(seq(a=pl.col("amount") > pl.col("amount").mean()))),
    ("a reference to a later step", "PATTERN_REFERENCE_LATER", "got the later step `b` in `payments.match, pattern step a`", lambda: built(seq(a="amount < b.amount", b="ok"))),
    ("a reference to an unknown step", "PATTERN_REFERENCE_UNKNOWN", "got `smal` in `payments.match, pattern step large` (did you mean `small`?); the steps so far are small, large", lambda: built(seq(small="ok", large="amount > smal.amount"))),
    ("a reference to a step without a column", "PATTERN_REFERENCE_WHOLE", "got the step `a` alone in `payments.match, pattern step b`; write a.column", lambda: built(seq(a="ok", b=pl.col("a").is_null()))),
    ("a reference to a step and a column of one name", "PATTERN_REFERENCE_AMBIGUOUS", "got `ok`, which is both", lambda: built(seq(ok="ok", b="amount > ok.amount"))),
    ("fewer rows at most than at least", "PATTERN_QUANTIFIER", "got at least 5, at most 3 in 'a{5,3}'", lambda: seq({"a{5,3}": "ok"})),
    ("no rows at most", "PATTERN_QUANTIFIER", "got at least 0, at most 0 in 'a{0,0}'", lambda: seq({"a{0,0}": "ok"})),
    ("exactly no rows", "PATTERN_QUANTIFIER", "got at least 0, at most 0", lambda: seq({"a{0}": "ok"})),
    ("fewer rows than none", "PATTERN_QUANTIFIER", "got at least -1, at most any in step `a`", lambda: seq(a=sw.step("ok", at_least=-1))),
    ("half a row", "PATTERN_QUANTIFIER", "at most 1.5", lambda: seq(a=sw.step("ok", at_most=1.5))),
    ("millions of rows", "PATTERN_QUANTIFIER", "whole numbers from 0 to 1000000", lambda: seq({"a{2000000}": "ok"})),
    ("a number of rows that cannot be read", "PATTERN_QUANTIFIER_UNREADABLE", "is written ?, *, +, {3}, {3,} or {3,5} after its name; got 'a{three}'", lambda: seq({"a{three}": "ok"})),
    ("empty braces", "PATTERN_QUANTIFIER_UNREADABLE", "got 'a{}'", lambda: seq({"a{}": "ok"})),
    ("a number of rows in two places", "PATTERN_QUANTIFIER_TWICE", "got 'a+'", lambda: seq({"a+": sw.step("ok", at_least=2)})),
    ("a step without a name", "PATTERN_STEP_NAME", "got '+'", lambda: seq({"+": "ok"})),
    ("a step with two words for a name", "PATTERN_STEP_NAME", "got 'not ok'", lambda: seq({"not ok": "ok"})),
    ("a step with a hidden name", "PATTERN_STEP_NAME", "got '__a'", lambda: seq({"__a": "ok"})),
    ("a reluctant step", "PATTERN_STEP_NAME", "got 'a+?'", lambda: seq({"a+?": "ok"})),
    ("a name that is a number", "PATTERN_STEP_NAME", "got 1", lambda: seq({1: "ok"})),
    ("two steps of one name", "PATTERN_STEP_TWICE", "got `a` twice", lambda: seq({"a": "ok", "a+": "not ok"})),
    ("only optional steps", "PATTERN_ALL_OPTIONAL", "got only optional steps: a, b", lambda: seq({"a?": "ok", "b*": "not ok"})),
    ("too many steps", "PATTERN_TOO_LONG", "at most 60 steps; got 61", lambda: seq({f"a{number}": "ok" for number in range(61)})),
    ("a condition that is never met", "PATTERN_NEVER", "got `false` in `payments.match, pattern step b`", lambda: built(seq(a="ok", b="false"))),
    ("a condition of which a part is never met", "PATTERN_NEVER", "got `ok and 1 = 2`", lambda: built(seq(a="ok and 1 = 2"))),
    ("a condition that is null", "PATTERN_NEVER", "in `payments.match, pattern step a`", lambda: built(seq(a=pl.lit(None, dtype=pl.Boolean)))),
    ("no time in which to match", "PATTERN_WITHIN", "got no `within`", lambda: sw.sequence(a="ok")),
    ("no time for so many rows", "PATTERN_WITHIN", "its state would grow forever", lambda: sw.times(a="ok", n=2)),
    ("no time for an absence", "PATTERN_WITHIN", 'within="10m"', lambda: sw.absent(after="ok", expect="ok")),
    ("a time of zero", "DURATION_TOO_SHORT", "`within` of a pattern must be longer than zero; got 0s", lambda: seq(a="ok", within="0s")),
    ("a negative time", "DURATION_TOO_SHORT", "got -1m", lambda: seq(a="ok", within="-1m")),
    ("an unknown contiguity", "PATTERN_CONTIGUITY", "got 'loose'", lambda: seq(a="ok", contiguity="loose")),
    ("an unknown way to skip", "PATTERN_SKIP", "got 'first'", lambda: seq(a="ok", skip="first")),
    ("so many rows that are none", "PATTERN_TIMES", "from 1 to 1000000; got 0", lambda: sw.times(a="ok", n=0, within="1m")),
    ("so many rows in words", "PATTERN_TIMES", "got 'three'", lambda: sw.times(a="ok", n="three", within="1m")),
    ("so many rows of two kinds", "PATTERN_TIMES_STEPS", "got a, b", lambda: sw.times(a="ok", b="ok", n=3, within="1m")),
    ("so many rows of nothing", "PATTERN_TIMES_STEPS", "got none", lambda: sw.times(n=3, within="1m")),
    ("an absence after several rows", "EXPRESSION_KIND", "got RowsOfStep", lambda: sw.absent(after=sw.step("ok", at_least=2), expect="ok", within="1m")),
    ("a key with the name of a time", "PATTERN_COLUMN_TAKEN", "got `event_time` twice in step `payments.match`", lambda: built(seq(a="ok"), "event_time string, ts long, ok boolean", "event_time")),
    ("a step and a column that give a time's name", "PATTERN_COLUMN_TAKEN", "got `first_time` twice", lambda: built(seq(first="ok"), "card string, ts long, time long, ok boolean")),
    ("a count and a column of one name", "PATTERN_COLUMN_TAKEN", "got `a_count` twice", lambda: built(seq({"a+": "ok"}))),
    ("two steps and columns that give one name", "PATTERN_COLUMN_TAKEN", "got `a_b_c` twice", lambda: built(seq(a="ok", a_b="ok"), "card string, ts long, ok boolean, b_c long, c long")),
    ("a column that late rows have", "LATE_COLUMN_TAKEN", "already have a column `late_by_ms`", lambda: built(seq(a="ok"), "card string, ts long, ok boolean, late_by_ms long")),
    ("a step name with a slash", "BAD_NAME", "a step name", lambda: sw.stream("s", sw.testing.rows_source(DDL)).key_by("card").match(seq(a="ok"), name="a/b")),
]  # fmt: skip


@pytest.mark.parametrize("code, words, define", [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_bad_pattern_is_refused_with_its_code_and_words(code: str, words: str, define: Callable[[], Any]) -> None:
    with pytest.raises(DefinitionError) as caught:
        define()
    assert words in str(caught.value)
    assert caught.value.code == code


def test_the_columns_that_rows_have_do_not_include_the_steps() -> None:
    with pytest.raises(DefinitionError) as caught:
        built(seq(a="ok", b="amuont > a.amount"))
    assert str(caught.value).endswith("the rows there have card, ts, amount, ok, count, place")


@pytest.mark.parametrize(
    "pattern",
    [
        seq(ok="ok", failed="not ok"),
        seq(a="place.city = 'Rome'", b="place.city = a.place.city"),
        seq(count="ok", b="count > 1"),
    ],
    ids=["steps that have names of columns", "fields of columns and of steps", "a column that has a step's name"],
)
def test_the_same_without_the_mistake_is_built(pattern: Any) -> None:  # noqa: ANN401  as above
    assert built(pattern).name == "p"
