"""The user's condition that pairs must satisfy in addition to their keys and times."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from slackwater.errors import SlackwaterError
from slackwater.ground.expressions import FAILURES
from slackwater.joins.columns import LEFT, RIGHT, SideName
from slackwater.joins.matching import Pairs


def judged(condition: pl.Expr, left: pl.DataFrame, right: pl.DataFrame, found: Pairs) -> tuple[pl.Series, int]:
    """Return for which pairs `condition` is true, and the number of pairs on which it fails, which do not match.

    The condition sees the rows as the structs `left` and `right`. Null counts as false.
    """
    pairs = pl.DataFrame([left.to_struct(LEFT).gather(found.ours), right.to_struct(RIGHT).gather(found.theirs)])
    failed: list[int] = []
    truths = pl.concat([*_judged(condition, pairs, 0, failed)])
    return truths.fill_null(value=False), len(failed)


def _judged(condition: pl.Expr, pairs: pl.DataFrame, first: int, failed: list[int]) -> Iterator[pl.Series]:
    """Yield the value of `condition` for parts of `pairs`, numbered from `first`; bisect where it fails."""
    try:
        truths = pairs.select(condition.alias("truth")).to_series()
    except MemoryError:
        raise
    except FAILURES as error:
        if isinstance(error, SlackwaterError) or pairs.is_empty():
            raise
        if pairs.height == 1:
            failed.append(first)
            yield pl.Series("truth", [False])
            return
        half = pairs.height // 2
        yield from _judged(condition, pairs[:half], first, failed)
        yield from _judged(condition, pairs[half:], first + half, failed)
    else:
        # A literal gives one value for all rows.
        yield truths if truths.len() == pairs.height else truths.new_from_index(0, pairs.height)


def can_judge_alone(condition: pl.Expr, left: pl.Schema, right: pl.Schema) -> bool:
    """Return whether a row can be tested with a partner of nulls, for which every built-in expression is null.

    A user's function may fail on a null that no partner ever has, and no row is to blame for that.
    """
    if "python_udf" in str(condition):
        return False
    nothing = pl.DataFrame({LEFT: [None], RIGHT: [None]}, schema={LEFT: pl.Struct(left), RIGHT: pl.Struct(right)})
    try:
        nothing.select(condition.alias("truth"))
    except FAILURES:
        return False
    return True


def tried(rows: pl.DataFrame, condition: pl.Expr, side: SideName, left: pl.Schema, right: pl.Schema) -> pl.DataFrame:
    """Return `rows` of a side, or fail if `condition` cannot be evaluated on one of them alone."""
    mine, theirs, other = (left, right, RIGHT) if side == LEFT else (right, left, LEFT)
    none = pl.lit(None, dtype=pl.Struct(theirs)).alias(other)
    rows.select(pl.struct(mine.names()).alias(side), none).select(condition.alias("truth"))
    return rows
