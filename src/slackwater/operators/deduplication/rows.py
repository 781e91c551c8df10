"""The output rows of a deduplication: results and duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from slackwater.base.times import to_timestamp

if TYPE_CHECKING:
    from slackwater.operators.deduplication.spec import DeduplicateSpec
    from slackwater.operators.step import Emitted


def shown(rows: pl.DataFrame, spec: DeduplicateSpec, **more: pl.Expr) -> pl.DataFrame:
    """Return `rows` (with `__ts`) with the columns of the output; `more` are additional columns of results."""
    own = (name for name in spec.row_types if name != "event_time")
    added = {"event_time": to_timestamp(pl.col("__ts")), **more}
    return rows.select(*own, *spec.lineage, **added).select(*spec.row_types, *more, *spec.lineage)


def set_aside(rows: pl.DataFrame, spec: DeduplicateSpec, out: Emitted) -> None:
    """Send `rows` to the output of duplicates."""
    if rows.height:
        out.sides.setdefault("duplicates", []).append(shown(rows, spec))
        out.count("duplicates", rows.height)
