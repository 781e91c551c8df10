"""Reads envelopes of the same encoding as changes, and puts changes of several encodings in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.formats.base import Decoded, Flaw
from slackwater.formats.debezium.columns import TOMBSTONE, change_columns, change_flaws
from slackwater.formats.debezium.encodings import WRITTEN_AS, RecordEncoding
from slackwater.formats.debezium.values import decoded_rows
from slackwater.formats.json import JsonDecoder, json
from slackwater.formats.schemas import spark_type

_SIDES: Final = ("before", "after")


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The columns of changes, of the table, and of its key."""

    schema: pl.Schema
    rows: pl.Schema
    key: tuple[str, ...]

    def of(self, envelopes: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, Flaw]]:
        """Turn envelopes into changes, and return the flaws of those that are invalid."""
        changes = change_columns(envelopes, self.schema, self.key)
        return changes, change_flaws(envelopes, changes, self.key)


class EnvelopeReader:
    """Reads JSON payloads of the same encoding."""

    def __init__(self, changes: Changes, reading: RecordEncoding, *, max_bytes: int) -> None:
        self._changes = changes
        self._reading = reading
        declared = dict(_declared(changes.rows, reading))
        formats = [json(part, max_bytes=max_bytes) for part in reading.parts(changes.rows)]
        self._decoders = [JsonDecoder(form, declarations=declared) for form in formats]

    def read(self, lines: pl.Series) -> Decoded:
        """Read payloads as changes, and flaws for those that could not be decoded."""
        payload = lines.cast(pl.Binary)
        parts = [decoder.decode(payload) for decoder in self._decoders]
        envelopes = pl.concat([part.frame for part in parts], how="horizontal")
        rows, flaws = decoded_rows(envelopes, self._changes.rows, self._reading)
        changes, more = self._changes.of(rows)
        flaws = more | flaws
        for part in reversed(parts):
            flaws |= flaws_of(part)
        return Decoded.of(changes, flaws)


class ChangeRows:
    """Collects rows of records in any order, to be put in order; the last row added for an index wins."""

    def __init__(self, schema: pl.Schema, height: int) -> None:
        self._frames = [pl.DataFrame(schema=schema)]
        self._row_of = np.full(height, -1, np.int64)
        self._rows = 0

    def add(self, places: NDArray[np.intp], rows: pl.DataFrame) -> None:
        """Add `rows` at the given indexes."""
        self._row_of[places] = self._rows + np.arange(rows.height)
        self._frames.append(rows)
        self._rows += rows.height

    def add_tombstones(self, places: NDArray[np.intp]) -> None:
        """Add a tombstone at each of the given indexes."""
        if len(places):
            nothing = self._frames[0].clear(len(places))
            self.add(places, nothing.with_columns(op=pl.lit(TOMBSTONE)))

    def decoded(self, flaws: dict[int, Flaw]) -> Decoded:
        """Return all rows in order; those of flawed records are all null."""
        self._row_of[list(flaws)] = -1
        frame = pl.concat(self._frames)
        if self._rows == len(self._row_of) and bool((self._row_of == np.arange(self._rows)).all()):
            return Decoded.of(frame, flaws)
        places = pl.Series(self._row_of).set(pl.Series(self._row_of < 0), None)
        return Decoded.of(frame.select(pl.all().gather(places)), flaws)


def flaws_of(decoded: Decoded) -> dict[int, Flaw]:
    """Return the flaws of decoded records by row index."""
    return {at: Flaw(reason=reason, message=message) for at, reason, message in decoded.bad.iter_rows()}


def _declared(rows: pl.Schema, reading: RecordEncoding) -> Iterator[tuple[tuple[str, pl.DataType], str]]:
    """Yield, for columns encoded as another type, their path and type in JSON, and how messages show the declared."""
    for name, wire, encoding in reading.written(rows):
        if encoding.kind != "as_json":
            for side in _SIDES:
                yield (f"{side}.{name}", wire), f"{spark_type(rows[name])} and written as {WRITTEN_AS[encoding.kind]}"
