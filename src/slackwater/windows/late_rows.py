"""The late output: the original row, how late it was, the windows it missed and the watermark that judged it."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.ground.times import timestamp_lit, to_timestamp
from slackwater.windows.spec import WindowSpec

ORIGIN: Final = ("__part", "__off", "__ingested", "__payload", "__key", "__headers")


def late_rows(rows: pl.DataFrame, spec: WindowSpec, watermark_ms: int) -> pl.DataFrame:
    """Return `rows` (with `__ts`, and their cell or interval in `__start`, `__end`) as late rows of `spec`.

    What says where a row came from stays with it, for a late row may yet become a dead letter.
    """
    starts, ends = spec.window.missed()
    carried = [name for name in ORIGIN if name in rows.columns]
    numbered = rows.select(
        *carried,
        *[name for name in spec.row_schema if name != "watermark"],
        to_timestamp(pl.col("__ts")).alias("event_time"),
        (pl.lit(watermark_ms, dtype=pl.Int64) - pl.col("__ts")).alias("late_by_ms"),
        timestamp_lit(watermark_ms).alias("watermark"),
        starts.alias("__starts"),
        ends.alias("__ends"),
        pl.lit(spec.name).alias("step"),
    ).with_row_index("__row")
    windows = (
        numbered.select("__row", "__starts", "__ends")
        .explode("__starts", "__ends")
        .select(
            "__row",
            pl.struct(
                to_timestamp(pl.col("__starts")).alias("start"), to_timestamp(pl.col("__ends")).alias("end")
            ).alias("windows"),
        )
        .group_by("__row", maintain_order=True)
        .agg(pl.col("windows"))
    )
    found = numbered.join(windows, on="__row", how="left", maintain_order="left")
    return found.select(spec.late_types.names()).cast(spec.late_types).hstack(found.select(carried).get_columns())
