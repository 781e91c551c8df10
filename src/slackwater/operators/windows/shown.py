"""The windows in a state in readable form, with the results that they would emit now."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from slackwater.operators.aggregates.base import Aggregate, WindowFailedError
from slackwater.operators.aggregates.combine import state_columns


def results_so_far(rows: pl.DataFrame, aggregates: Mapping[str, Aggregate], types: pl.Schema) -> pl.DataFrame:
    """Return state rows with the result of each aggregate in place of its state.

    If a result cannot be computed, such as a sum that is too large, the column is null in all rows: the state of a job
    that stopped because of it must be readable.
    """
    hidden = state_columns(rows, aggregates)
    for alias, aggregate in aggregates.items():
        try:
            rows = aggregate.finish(rows, alias)
        except WindowFailedError:
            rows = rows.with_columns(pl.lit(None, dtype=types[alias]).alias(alias))
    return rows.drop(hidden)
