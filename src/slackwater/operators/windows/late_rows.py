"""The late rows of a window step, with the windows that each of them missed."""

from __future__ import annotations

import polars as pl

from slackwater.base.times import to_timestamp
from slackwater.operators import late_rows as of_steps
from slackwater.operators.windows.base import Window
from slackwater.operators.windows.spec import WindowSpec


def missed_windows(rows: pl.DataFrame, window: Window) -> pl.Series:
    """Return the windows that each row missed, from its cell or interval in `__start`, `__end`."""
    starts, ends = window.missed()
    numbered = rows.select(starts.alias("__starts"), ends.alias("__ends")).with_row_index("__row")
    bounds = pl.struct(to_timestamp(pl.col("__starts")).alias("start"), to_timestamp(pl.col("__ends")).alias("end"))
    windows = (
        numbered.explode("__starts", "__ends")
        .select("__row", bounds.alias("__windows"))
        .group_by("__row", maintain_order=True)
        .agg(pl.col("__windows"))
    )
    return numbered.join(windows, on="__row", how="left", maintain_order="left")["__windows"]


def late_rows(rows: pl.DataFrame, spec: WindowSpec, watermark_ms: int) -> pl.DataFrame:
    """Return `rows` (with `__ts`, and their cell or interval in `__start`, `__end`) as late rows of `spec`."""
    shown_ms = spec.shown_watermark_ms(watermark_ms)
    found = rows.with_columns(missed_windows(rows, spec.window))
    return of_steps.late_rows(found, spec.late_types, spec.name, shown_ms, windows=pl.col("__windows"))
