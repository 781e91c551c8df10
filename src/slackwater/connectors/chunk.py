"""Chunks: the unit in which a source passes records to FRONT, each record with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl
import pyarrow as pa

from slackwater.base.errors import fault

_CHUNK_ROWS: Final = 1_000_000
_CHUNK_BYTES: Final = 128 << 20


@dataclass(kw_only=True)
class Chunk:
    """Some records of one file, or of one Arrow batch, with their origin."""

    frame: pl.DataFrame
    """The columns of a typed source; or `__payload`, with `__key` and `__headers` if the source has them."""
    partition: str
    file: str
    """The file's name within `partition`; chunks with equal files are merged."""
    first_offset: int
    source: str
    ingestion_ms: int | pl.Series
    """When the log received the records: one time for all, or one per record."""
    shown_offset: int | None = None
    """The first record's offset as shown in dead letters; `first_offset`, unless the file's name gives another."""
    offsets: pl.Series | None = None
    """The offset of each record, if they do not simply count up from `first_offset`."""

    @property
    def last_offset(self) -> int:
        """The offset of the last record; if there are none, of the one before the first."""
        if self.offsets is None or not len(self.offsets):
            return self.first_offset + self.frame.height - 1
        return int(self.offsets.max())  # type: ignore[arg-type]  # integers, which Polars does not narrow

    def placed(self) -> pl.DataFrame:
        """Return the frame with each row's partition, offset and ingestion time as columns."""
        stop = self.first_offset + self.frame.height
        offsets = pl.int_range(self.first_offset, stop, dtype=pl.Int64) if self.offsets is None else self.offsets
        ingested = self.ingestion_ms
        return self.frame.with_columns(
            pl.lit(self.partition).alias("__part"),
            offsets.alias("__off"),
            (ingested if isinstance(ingested, pl.Series) else pl.lit(ingested, dtype=pl.Int64)).alias("__ingested"),
        )


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of small batches as large tables: the more rows FRONT sees at once, the more it combines."""
    pieces: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        pieces.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield pa.Table.from_batches(pieces)
            pieces, rows, size = [], 0, 0
    if pieces:
        yield pa.Table.from_batches(pieces)


def conform(frame: pl.DataFrame, schema: pl.Schema, place: str) -> pl.DataFrame:
    """Return a typed source's frame with exactly the declared columns; missing ones are null.

    A column of another type is cast to the declared one if no value changes; otherwise raises, naming `place`.
    """
    missing = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in frame.columns]
    frame = frame.with_columns(missing).select(schema.names())
    for column in frame:
        dtype = schema[column.name]
        if column.dtype == dtype:
            continue
        try:
            taken = column.cast(dtype, strict=False)
            changed = taken.cast(column.dtype, strict=False).ne_missing(column)
        except pl.exceptions.PolarsError:
            taken, changed = column, column.is_not_null()
        if changed.any():
            value = column.filter(changed).head(1).to_list()[0]
            facts = {"column": column.name, "found": column.dtype, "declared": dtype, "value": f"{value!r:.100}"}
            raise fault("SOURCE_COLUMN_TYPE", place=place, **facts)
        frame = frame.with_columns(taken)
    return frame
