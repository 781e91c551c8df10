"""The condition that pairs must meet besides their keys and times, as users give it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from slackwater.errors import SlackwaterError, cause_of
from slackwater.ground.expressions import FAILURES
from slackwater.joins.columns import LEFT, RIGHT
from slackwater.joins.matching import Pairs

_LONGEST_MESSAGE = 1000


def judged(
    condition: pl.Expr, left: pl.DataFrame, right: pl.DataFrame, found: Pairs, failed: dict[int, str]
) -> pl.Series:
    """Return of which pairs `condition` is true; pairs on which it fails are added to `failed`, with the error's text.

    It sees the rows as the structs `left` and `right`. Of null it is as of false.
    """
    pairs = pl.DataFrame([left.to_struct(LEFT).gather(found.ours), right.to_struct(RIGHT).gather(found.theirs)])
    truths = pl.concat([*_judged(condition, pairs, 0, failed)])
    return truths.fill_null(value=False)


def _judged(condition: pl.Expr, pairs: pl.DataFrame, first: int, failed: dict[int, str]) -> Iterator[pl.Series]:
    """Yield the truth of `condition` for parts of `pairs`, counted from `first`; where it fails, halve."""
    try:
        truths = pairs.select(condition.alias("truth")).to_series()
    except MemoryError:
        raise
    except FAILURES as error:
        if isinstance(error, SlackwaterError) or pairs.is_empty():
            raise
        if pairs.height == 1:
            failed[first] = cause_of(error)[:_LONGEST_MESSAGE]
            yield pl.Series("truth", [False])
            return
        half = pairs.height // 2
        yield from _judged(condition, pairs[:half], first, failed)
        yield from _judged(condition, pairs[half:], first + half, failed)
    else:
        # A literal is one value for all rows.
        yield truths if truths.len() == pairs.height else truths.new_from_index(0, pairs.height)
