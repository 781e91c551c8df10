"""JSON records: the definition that users write, and the decoder that turns bytes into columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.errors import refuse
from slackwater.formats.base import Decoded, Decoder, Flaw, Format
from slackwater.formats.json_kernel import Kernel
from slackwater.formats.json_proof import Prover
from slackwater.formats.json_records import RecordReader
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.formats.texts import to_texts

MAX_DEPTH: Final = 64
MAX_BYTES: Final = 1 << 20

_DEEPEST: Final = 256
_LONGEST: Final = 64 << 20


@dataclass(frozen=True, kw_only=True)
class JsonFormat(Format):
    """Records that are JSON objects, one a record, with the columns of `schema`.

    A field that is missing is null; one that is not declared is passed over. Nothing is coerced: a
    record whose field is not of the declared type is a dead letter.
    """

    schema: pl.Schema = field(hash=False)
    max_depth: int = MAX_DEPTH
    max_bytes: int = MAX_BYTES

    def decoder(self) -> JsonDecoder:
        """Return a decoder of such records."""
        return JsonDecoder(self)

    def __str__(self) -> str:
        return "JSON"


def json(schema: SchemaSpec, *, max_depth: int = MAX_DEPTH, max_bytes: int = MAX_BYTES) -> JsonFormat:
    """Read records as JSON objects: `json("order_id string, amount double, placed_at timestamp")`.

    Times are ISO 8601 strings, with an offset or in UTC; `binary` is base64; a `map` is an object.
    Records nested deeper than `max_depth` or longer than `max_bytes` are dead letters.
    """
    for what, got, most, default in (
        ("max_depth", max_depth, _DEEPEST, MAX_DEPTH),
        ("max_bytes", max_bytes, _LONGEST, MAX_BYTES),
    ):
        if isinstance(got, bool) or not isinstance(got, int) or not 1 <= got <= most:
            raise refuse("FORMAT_LIMIT", what=what, least=1, most=most, got=repr(got), default=default)
    return JsonFormat(schema=as_schema(schema), max_depth=max_depth, max_bytes=max_bytes)


class JsonDecoder(Decoder):
    """Decodes records of one format; never raises, whatever the bytes are.

    1. What is no text, or too long, is put aside.
    2. Records are proven right by patterns, all at once; the proven ones are read by DuckDB.
    3. The others are read one by one, exactly.

    Which way a record takes decides how long it takes, never what becomes of it. Made once per task;
    it learns the shape of the records from those it has seen.
    """

    def __init__(self, form: JsonFormat) -> None:
        self._format = form
        self._reader = RecordReader(form.schema, max_depth=form.max_depth)
        self._prover = Prover(form.schema, self._reader, max_depth=form.max_depth)
        self._kernel = Kernel(form.schema)

    def __reduce__(self) -> tuple[type[JsonDecoder], tuple[JsonFormat]]:
        return (type(self), (self._format,))

    def decode(self, payload: pl.Series) -> Decoded:
        """Return the rows of a column of bytes, and what is wrong with the records that gave none."""
        texts = to_texts(payload, max_bytes=self._format.max_bytes)
        lines = texts.lines
        proven = self._prover.prove(lines)
        read = self._read_proven(lines, proven)
        lost = self._prover.lost_maps(lines, read, proven)
        if lost:
            proven[lost] = False
            read = self._read_proven(lines, proven)
        return self._one_by_one(lines, read, np.flatnonzero(~proven), texts.flaws)

    def _read_proven(self, lines: pl.Series, proven: NDArray[np.bool_]) -> pl.DataFrame:
        """Return the rows of the proven lines, nulls for the others; unmark what cannot be read after all."""
        if not proven.any():
            return pl.DataFrame(schema=self._format.schema).clear(len(lines))
        if not proven.all():
            lines = pl.select(pl.when(pl.Series(proven)).then(lines)).to_series()
        read, refused = self._kernel.read(lines)
        proven[refused] = False
        return read

    def _one_by_one(
        self, lines: pl.Series, read: pl.DataFrame, unproven: NDArray[np.intp], flaws: dict[int, Flaw]
    ) -> Decoded:
        good: dict[int, tuple[object, ...]] = {}
        for at, line in zip(unproven.tolist(), lines.gather(unproven).to_list(), strict=True):
            if line is None:
                continue
            record = self._reader.read(line)
            if isinstance(record, Flaw):
                flaws[at] = record
            else:
                good[at] = record
        if good:
            read = self._overlaid(read, good)
        return Decoded.of(read, flaws)

    def _overlaid(self, read: pl.DataFrame, good: dict[int, tuple[object, ...]]) -> pl.DataFrame:
        """Return `read` with the rows of `good` in their places."""
        columns = zip(*good.values(), strict=True)
        exact = pl.DataFrame(
            [
                pl.Series(name, values, dtype=dtype, strict=True)
                for (name, dtype), values in zip(self._format.schema.items(), columns, strict=True)
            ]
        )
        if len(good) == read.height:
            return exact
        source = np.arange(read.height)
        source[list(good)] = read.height + np.arange(len(good))
        return pl.concat([read, exact])[source]
