"""A SQL expression that cannot be read: one sentence with what was expected, and near what."""

from __future__ import annotations

import re

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError
from slackwater.base.expressions import as_expr, result_schema


def cause(text: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        as_expr(text)
    assert caught.value.code == "EXPRESSION_SQL"
    found = re.search(f"got `{re.escape(text)}`: (.*); (?:check quotes|use )", caught.value.message)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    "text, why",
    [
        ("amount > ", "expected an expression, at the end of `amount >`"),
        ("", "expected an expression, at the end of ``"),
        ("(amount > 5", "expected `)`, at the end of `(amount > 5`"),
        ("amount BETWEEN 1", "expected `AND`, at the end of `amount BETWEEN 1`"),
        ("amount > 5)", "expected end of statement instead of `)`, near `amount > 5)`"),
        ("1 +* 2", "expected an expression instead of `*`, near `1 +* 2`"),
        ("status = 'paid", "unterminated string literal, near `status = 'paid`"),
        ("*", "it is not one value"),
        ("a, b", "it is not one value"),
        ("SELECT 1", '`SELECT` is a keyword; a column of that name is written "SELECT"'),
        ("order > 5", '`order` is a keyword; a column of that name is written "order"'),
        ("foo(a)", "unsupported function 'foo'"),
        ("a IS UNKNOWN", "IS UNKNOWN is not supported, near `a IS UNKNOWN`"),
        ("a COLLATE x", "COLLATE is not supported, near `a COLLATE x`"),
        ("a = 1 AND b SIMILAR TO 'x'", "SIMILAR TO is not supported, near `a = 1 AND b SIMILAR TO 'x'`"),
        ("a AT TIME ZONE 'x'", None),
    ],
)
def test_sql_that_cannot_be_read_is_one_sentence(text: str, why: str | None) -> None:
    found = cause(text)
    assert why is None or found == why
    assert re.search(r"Ident|Span|Location|[{}]|\n", found) is None


def test_long_sql_shows_the_text_around_the_place() -> None:
    text = f"a > 1\nAND b = 2 AND {'c' * 60} +* 2 AND {'d' * 60} = 1"
    with pytest.raises(DefinitionError) as caught:
        as_expr(text)
    around = f"near `…{'c' * 18} +* 2 AND {'d' * 12}…`; check"
    assert f": expected an expression instead of `*`, {around}" in caught.value.message


def test_types_that_do_not_fit_are_one_sentence_without_the_plan() -> None:
    with pytest.raises(DefinitionError) as caught:
        result_schema(pl.Schema({"s": pl.String()}), [pl.col("s").dt.hour()], step="s.select")
    assert caught.value.code == "EXPRESSION_TYPE"
    assert "\n" not in caught.value.message
