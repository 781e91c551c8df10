"""The windows of a state as people read them: with the results that they would show now."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from slackwater.aggregates.base import Aggregate, WindowFailedError
from slackwater.aggregates.combine import state_columns


def results_so_far(rows: pl.DataFrame, aggregates: Mapping[str, Aggregate], types: pl.Schema) -> pl.DataFrame:
    """Return state rows with the result of each aggregate in place of its state.

    A result that cannot be computed, such as a sum that is too large, is null in all of them: the state of a job that
    stopped because of it must be readable.
    """
    hidden = state_columns(rows, aggregates)
    for alias, aggregate in aggregates.items():
        try:
            rows = aggregate.finish(rows, alias)
        except WindowFailedError:
            rows = rows.with_columns(pl.lit(None, dtype=types[alias]).alias(alias))
    return rows.drop(hidden)
