"""The encoder that turns rows into Avro: bare records, or records in Confluent's wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from slackwater.formats.avro.fitting import fit_record
from slackwater.formats.avro.pieces import AssembledRecords, Numbers, Part
from slackwater.formats.avro.schema import AvroRecord
from slackwater.formats.avro.values import slices_of
from slackwater.formats.registry import Registry

_ROWS_AT_ONCE: Final = 1 << 16
"""The number of records encoded at a time, whose arrays then fit in the processor's cache."""
_BYTES_AT_ONCE: Final = 16 << 20
_HEADER_BYTES: Final = 5


class AvroEncoder:
    """Encodes rows of some columns as records of one schema.

    1. Columns are checked against the schema's fields when the encoder is created: see `fit_record`.
    2. With a registry, the schema is registered under the subject once, before the first record is written or when
       `schema_id` is called; an id given at creation is used instead.
    3. Rows are encoded field by field, each field for thousands of records at once.

    A registry that does not answer raises `RunError` REGISTRY_UNREACHABLE, which is transient: the same rows can be
    encoded again. Every other error recurs with the same rows.
    """

    def __init__(
        self,
        columns: Mapping[str, pl.DataType],
        writer: AvroRecord,
        *,
        text: str,
        subject: str,
        registry: Registry | None,
        schema_id: int | None = None,
    ) -> None:
        self.text = text
        """The schema that records are written with, as JSON."""
        self._columns = pl.Schema(columns)
        self._output = fit_record(self._columns, writer)
        self._subject = subject
        self._registry = registry
        self._schema_id = schema_id

    def schema_id(self) -> int | None:
        """Return the schema id of the records, registering the schema if necessary; None without a registry."""
        if self._schema_id is None and self._registry is not None:
            self._schema_id = self._registry.register(self._subject, self.text)
        return self._schema_id

    def encode(self, frame: pl.DataFrame) -> pl.Series:
        """Encode each row as a record, in bytes."""
        return self._records(frame, self.schema_id())

    def try_out(self, frame: pl.DataFrame) -> pl.Series:
        """Encode like `encode`, but with id 0 if the registry has not returned an id yet."""
        return self._records(frame, None if self._registry is None else self._schema_id or 0)

    def _records(self, frame: pl.DataFrame, schema_id: int | None) -> pl.Series:
        given = frame if frame.schema == self._columns else frame.match_to_schema(self._columns)
        average = max(int(given.estimated_size()) // max(given.height, 1), 1)
        step = min(max(_BYTES_AT_ONCE // average, 1), _ROWS_AT_ONCE)
        parts = [pl.Series(dtype=pl.Binary)]
        parts += [self._encoded(given[at : at + step], schema_id) for at in range(0, given.height, step)]
        return pl.concat(parts, rechunk=False)

    def _encoded(self, frame: pl.DataFrame, schema_id: int | None) -> pl.Series:
        pieces: list[Part] = self._output.of_frame(frame)
        if schema_id is not None:
            header = int.from_bytes(b"\x00" + schema_id.to_bytes(4, "big"), "little")
            every = np.full(frame.height, header, np.uint64)
            pieces.insert(0, Numbers(values=every, sizes=_HEADER_BYTES))
        records = AssembledRecords.of(pieces, frame.height)
        return slices_of(records.data, records.starts, records.stops)
