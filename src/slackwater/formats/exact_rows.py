"""Inserts rows that were read one by one among those that were read in bulk."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

Row = tuple[Any, ...]


def with_rows(frame: pl.DataFrame, rows: dict[int, Row | None]) -> pl.DataFrame:
    """Return `frame` with `rows` replaced at their indexes; None is a row of nulls."""
    if not rows:
        return frame
    nothing = (None,) * frame.width
    places = sorted(rows)
    columns = zip(*(rows[at] or nothing for at in places), strict=True)
    exact = pl.DataFrame(
        [
            pl.Series(name, values, dtype=dtype, strict=True)
            for (name, dtype), values in zip(frame.schema.items(), columns, strict=True)
        ]
    )
    if len(rows) == frame.height:
        return exact
    source = np.arange(frame.height)
    source[places] = frame.height + np.arange(len(rows))
    return pl.concat([frame, exact])[source]
