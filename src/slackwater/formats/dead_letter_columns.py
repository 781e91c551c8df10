"""Dead letters: the records that could not be processed, with their bytes, their position and the reason."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.formats.ddl import TIMESTAMP

HEADERS: Final = pl.List(pl.Struct({"name": pl.String(), "value": pl.Binary()}))
"""The headers of a record, as in Kafka: in order, possibly with duplicate names."""

DEAD_LETTER_SCHEMA: Final = pl.Schema(
    {
        "payload": pl.Binary(),
        "key": pl.Binary(),
        "headers": HEADERS,
        "source": pl.String(),
        "partition": pl.String(),
        "offset": pl.Int64(),
        "ingestion_time": TIMESTAMP,
        "step": pl.String(),
        "reason": pl.String(),
        "message": pl.String(),
        "processed_at": TIMESTAMP,
    }
)
"""The columns of every dead-letter output."""
PLACE: Final = ("source", "partition", "offset")
"""The columns that identify a record's position in its source."""


def dead_letters(
    *,
    payload: pl.Series,
    partition: pl.Series | str,
    offset: pl.Series | int,
    reason: pl.Series | str,
    message: pl.Series | str,
    source: pl.Series | str,
    step: pl.Series | str,
    ingestion_time_ms: pl.Series | int | None,
    processed_at_ms: pl.Series | int,
    key: pl.Series | None = None,
    headers: pl.Series | None = None,
) -> pl.DataFrame:
    """Return one dead letter per record of `payload`.

    Every other argument has one value per record, or one value for all of them (a scalar, or a series of length 1).
    Times are milliseconds since the epoch. `key` and `headers` are null if the source has none.
    """
    given: dict[str, pl.Series | str | int | None] = {
        "payload": payload,
        "key": key,
        "headers": headers,
        "source": source,
        "partition": partition,
        "offset": offset,
        "ingestion_time": ingestion_time_ms,
        "step": step,
        "reason": reason,
        "message": message,
        "processed_at": processed_at_ms,
    }
    return pl.DataFrame([_column(name, given[name], dtype, len(payload)) for name, dtype in DEAD_LETTER_SCHEMA.items()])


def _column(name: str, value: pl.Series | str | int | None, dtype: pl.DataType, height: int) -> pl.Series:
    if not isinstance(value, pl.Series):
        # Times arrive as integer milliseconds, which are cast to a time only once their unit is known.
        plain = pl.Int64() if isinstance(dtype, pl.Datetime) else dtype
        value = pl.Series(name, [value], dtype=plain)
    if len(value) == 1 and height != 1:
        value = value.new_from_index(0, height)
    if isinstance(dtype, pl.Datetime):
        return value.cast(pl.Int64).cast(pl.Datetime("ms", "UTC")).cast(dtype).alias(name)
    return value.cast(dtype).alias(name)
