"""The late output of a step: the original row, how late it was, and the watermark it was compared with."""

from __future__ import annotations

from typing import Final, Literal

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.times import TIMESTAMP, timestamp_lit, to_timestamp
from slackwater.formats.row_payloads import row_payloads
from slackwater.operators.ports import Port

Late = Literal["output", "process"]
"""How a step handles a row behind the watermark: send it to the late output, or process it like any other."""
ORIGIN: Final = ("__part", "__off", "__ingested", "__payload", "__key", "__headers")
"""The columns that say where a row came from."""
_ADDED: Final = ("event_time", "late_by_ms", "watermark")
SHARED_LATE_SCHEMA: Final = pl.Schema(
    {
        "step": pl.String(),
        "stream": pl.String(),
        "event_time": TIMESTAMP,
        "late_by_ms": pl.Int64(),
        "watermark": TIMESTAMP,
        "row": pl.String(),
    }
)
"""The columns of a late output that several steps share; `row` has all others as JSON."""


def check_late_columns(port: Port, step: str, *more: str) -> None:
    """Reject rows with a column that Slackwater adds to late rows; `more` are those of this kind of step."""
    *added, last = (*_ADDED, *more, "step")
    for column in port.schema:
        if column in (*added, last) and column not in port.own:
            raise refuse("LATE_COLUMN_TAKEN", step=step, column=column, added=f"{', '.join(added)} and {last}")


def late_schema(schema: pl.Schema, **more: pl.DataType) -> pl.Schema:
    """Return the columns of the late rows of a port with `schema`; `more` are added by this kind of step."""
    types = dict(schema)
    types |= {"event_time": TIMESTAMP, "late_by_ms": pl.Int64(), "watermark": TIMESTAMP, **more, "step": pl.String()}
    return pl.Schema(types)


def late_rows(rows: pl.DataFrame, types: pl.Schema, step: str, watermark_ms: int, **more: pl.Expr) -> pl.DataFrame:
    """Return `rows` (with `__ts`) as late rows with the columns `types`; columns that they lack are null.

    The columns of `ORIGIN` are retained, because a late row may still become a dead letter.
    """
    carried = [name for name in ORIGIN if name in rows.columns]
    added = {
        "event_time": to_timestamp(pl.col("__ts")),
        "late_by_ms": pl.lit(watermark_ms, dtype=pl.Int64) - pl.col("__ts"),
        "watermark": timestamp_lit(watermark_ms),
        **more,
        "step": pl.lit(step),
    }
    columns = [
        (added[name] if name in added else pl.col(name) if name in rows.columns else pl.lit(None))
        .cast(dtype)
        .alias(name)
        for name, dtype in types.items()
    ]
    return rows.select(*columns, *carried)


def shared_late_rows(late: pl.DataFrame, stream: str) -> pl.DataFrame:
    """Return the late rows of a stream with the columns that the late rows of all steps share."""
    hidden = [name for name in late.columns if name.startswith("__")]
    rest = late.drop(*_ADDED, "step", *hidden)  # may have a `stream` or `row` of its own
    known = late.with_columns(pl.lit(stream).alias("stream"), row_payloads(rest).cast(pl.String).alias("row"))
    return known.select(*SHARED_LATE_SCHEMA, *hidden)
