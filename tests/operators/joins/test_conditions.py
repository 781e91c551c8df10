"""What a condition on pairs reads of each side, and which parts of it a row is tried with alone."""

from __future__ import annotations

import polars as pl
import pytest

from slackwater.base.expressions import as_expr
from slackwater.operators.joins.columns import SideName
from slackwater.operators.joins.conditions import columns_read, tried_alone

SCHEMA = pl.Schema({"id": pl.String(), "n": pl.Int64(), "s": pl.String()})
LEFT, RIGHT = pl.col("left"), pl.col("right")
WORDS = LEFT.struct["s"].map_elements(lambda text: len(text.split()), return_dtype=pl.Int64)
OWN = pl.struct("left", RIGHT.struct["n"]).map_elements(lambda _: True, return_dtype=pl.Boolean)


@pytest.mark.parametrize(
    "condition, left, right",
    [
        ("right.n <= left.n", ["n"], ["n"]),
        ("cast(right.s as bigint) > 0", ["id"], ["s"]),
        ("case when left.n > 1 then left.s = 'x' else right.n > 1 end", ["n", "s"], ["n"]),
        (LEFT.is_not_null() & (RIGHT.struct["n"] > 1), ["id", "n", "s"], ["n"]),
        (LEFT.struct["s"].is_in(["a", "b"]) & RIGHT.struct["n"].is_between(LEFT.struct["n"], 7), ["n", "s"], ["n"]),
        (OWN, ["id", "n", "s"], ["n"]),
    ],
)
def test_a_condition_sees_the_columns_that_it_reads(
    condition: str | pl.Expr, left: list[str], right: list[str]
) -> None:
    expression = as_expr(condition)
    assert columns_read(expression, "left", SCHEMA) == left
    assert columns_read(expression, "right", SCHEMA) == right


@pytest.mark.parametrize(
    "condition, side, parts",
    [
        ("right.n <= left.n", "left", 0),  # a column cannot fail
        ("cast(left.s as bigint) < right.n", "left", 1),
        ("cast(left.s as bigint) < right.n", "right", 0),
        ("cast(left.s as bigint) < cast(right.s as bigint)", "right", 1),
        ("cast(coalesce(right.s, left.s) as bigint) > 1", "left", 0),
        ("case when right.n > 3 then cast(left.s as bigint) = 1 else true end", "left", 0),  # for some pairs only
        ("case when left.n > 3 then cast(left.s as bigint) = 1 else true end", "left", 1),  # the same for every pair
        (
            LEFT.struct["s"].map_elements(lambda text: len(text.split()), return_dtype=pl.Int64) > RIGHT.struct["n"],
            "left",
            0,
        ),
    ],
)
def test_a_row_is_tried_with_the_parts_that_read_its_side_alone(
    condition: str | pl.Expr, side: SideName, parts: int
) -> None:
    assert len(tried_alone(as_expr(condition), side, SCHEMA)) == parts
