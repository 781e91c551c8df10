"""A column of records as one buffer: where each begins and ends, and the id of its writer's schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.formats.avro.cursor import I64, PADDING, Buffer, Cursor, RecordFlaws
from slackwater.formats.base import Flaw, too_long

_HEADER: Final = 5
"""Bytes before a body in Confluent's wire format: a zero byte and the schema id."""


@dataclass(kw_only=True)
class Payload:
    """Records, each from `start` to `end` in the buffer; its body begins at `body`."""

    buffer: Buffer
    is_null: NDArray[np.bool_]
    start: I64
    end: I64
    body: I64

    @classmethod
    def of(cls, payload: pl.Series) -> Payload:
        """Wrap a column of bytes."""
        plain = payload.rechunk().to_arrow()
        _, offsets, values = plain.buffers()
        if offsets is None or not len(plain):
            places = np.zeros(len(plain) + 1, np.int64)
        else:
            places = np.frombuffer(memoryview(offsets), np.int64)[plain.offset : plain.offset + len(plain) + 1]
        data = np.frombuffer(b"" if values is None else memoryview(values), np.uint8)
        buffer = Buffer(data[places[0] : places[-1]])
        places = places - (places[0] - PADDING)
        start, end = places[:-1], places[1:]
        return cls(buffer=buffer, is_null=payload.is_null().to_numpy(), start=start, end=end, body=start)

    def sized(self, max_bytes: int) -> tuple[I64, dict[int, Flaw]]:
        """Return the records that are neither empty nor too long, and flaws for the others."""
        flaws: dict[int, Flaw] = {}
        size = self.end - self.start
        for at in np.flatnonzero(size == 0).tolist():
            words = "the record has no payload" if self.is_null[at] else "the record has no bytes"
            flaws[at] = Flaw(reason="empty_record", message=words)
        for at in np.flatnonzero(size > max_bytes).tolist():
            flaws[at] = too_long(size[at], most=max_bytes)
        return np.flatnonzero((size > 0) & (size <= max_bytes)), flaws

    def framed(self, rows: I64) -> tuple[I64, dict[int, Flaw]]:
        """Return the rows that begin with the header of Confluent's wire format, and flaws for the others."""
        flaws: dict[int, Flaw] = {}
        first, size = self.buffer.bytes[self.start[rows]], (self.end - self.start)[rows]
        for place in np.flatnonzero((first != 0) | (size < _HEADER)).tolist():
            at = int(rows[place])
            if first[place]:
                words = f"a record in Confluent's wire format begins with byte 0x00; got 0x{first[place]:02x}"
                flaws[at] = Flaw(reason="malformed", message=words)
            else:
                words = f"a record in Confluent's wire format begins with {_HEADER} bytes; got {size[place]}"
                flaws[at] = Flaw(reason="truncated", message=words)
        self.body = self.start + _HEADER
        return rows[(first == 0) & (size >= _HEADER)], flaws

    def by_schema(self, rows: I64) -> Iterator[tuple[int, I64]]:
        """Yield schema ids and the records of each, largest groups first."""
        ids = self._ids(rows)
        if len(ids) and bool((ids == ids[0]).all()):
            yield int(ids[0]), rows
            return
        groups = pl.DataFrame({"id": ids, "row": rows}).group_by("id").agg("row")
        groups = groups.sort(pl.col("row").list.len(), "id", descending=[True, False])
        for schema_id, group in zip(groups["id"].to_list(), groups["row"], strict=True):
            yield schema_id, group.sort().to_numpy()

    def schema_id(self, at: int) -> int:
        """Return the id of the schema that a record was written with."""
        return int(self._ids(np.array([at]))[0])

    def cursor(self, findings: RecordFlaws, rows: I64) -> Cursor:
        """Return a cursor at the bodies of some records."""
        return Cursor(self.buffer, findings, record=rows, position=self.body[rows], end=self.end[rows])

    def _ids(self, rows: I64) -> NDArray[np.uint64]:
        return self.buffer.words[self.start[rows] + 1].byteswap() >> np.uint64(32)
