"""The truth of a user's condition for many rows, or pairs of rows: it does not hold where it fails."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from slackwater.base.errors import SlackwaterError
from slackwater.base.expressions import FAILURES


def truths(rows: pl.DataFrame, condition: pl.Expr) -> tuple[pl.Series, int]:
    """Return for which rows `condition` is true, and the number of rows on which it fails; null counts as false."""
    failed: list[int] = []
    found = pl.concat([*_truths(rows, condition, failed)])
    return found.fill_null(value=False), len(failed)


def _truths(rows: pl.DataFrame, condition: pl.Expr, failed: list[int]) -> Iterator[pl.Series]:
    """Yield the value of `condition` for parts of `rows`, in order; bisect where it fails."""
    try:
        found = rows.select(condition.alias("truth")).to_series()
    except MemoryError:
        raise
    except FAILURES as error:
        if isinstance(error, SlackwaterError) or rows.is_empty():
            raise
        if rows.height == 1:
            failed.append(1)
            yield pl.Series("truth", [False])
            return
        half = rows.height // 2
        yield from _truths(rows[:half], condition, failed)
        yield from _truths(rows[half:], condition, failed)
    else:
        # A literal gives one value for all rows.
        yield found if found.len() == rows.height else found.new_from_index(0, rows.height)
