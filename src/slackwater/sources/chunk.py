"""Chunks: what a source gives FRONT, some thousand records at a time, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl
import pyarrow as pa

from slackwater.errors import fault

_CHUNK_ROWS: Final = 1_000_000
_CHUNK_BYTES: Final = 128 << 20


@dataclass(kw_only=True)
class Chunk:
    """Some records of one file, or of one Arrow batch, with where they come from."""

    frame: pl.DataFrame
    """The columns of a typed source; or `__payload`, with `__key` and `__headers` where there are such."""
    partition: str
    file: str
    """What `partition` calls the file; chunks with equal files are merged."""
    first_offset: int
    source: str
    ingestion_ms: int | pl.Series
    """When the log received the records: all of them, or each."""
    shown_offset: int | None = None
    """What dead letters call the place of the first record; `first_offset` unless its file's name says another."""
    offsets: pl.Series | None = None
    """The place of each record, if they do not simply follow `first_offset`."""

    @property
    def last_offset(self) -> int:
        """The place of the last record, or of the one before the first if there are none."""
        if self.offsets is None or not len(self.offsets):
            return self.first_offset + self.frame.height - 1
        return int(self.offsets.max())  # type: ignore[arg-type]  # whole numbers: Polars says any

    def placed(self) -> pl.DataFrame:
        """Return the frame with each row's partition, place and ingestion time, which travel with it."""
        stop = self.first_offset + self.frame.height
        offsets = pl.int_range(self.first_offset, stop, dtype=pl.Int64) if self.offsets is None else self.offsets
        ingested = self.ingestion_ms
        return self.frame.with_columns(
            pl.lit(self.partition).alias("__part"),
            offsets.alias("__off"),
            (ingested if isinstance(ingested, pl.Series) else pl.lit(ingested, dtype=pl.Int64)).alias("__ingested"),
        )


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of small batches in large tables: the more rows FRONT sees at once, the more it combines."""
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
    """Return a typed source's frame with exactly the declared columns; a missing one is null.

    A column of another type becomes the declared one where that changes no value of it; else `place` is at fault.
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
