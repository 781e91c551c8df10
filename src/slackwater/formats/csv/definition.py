"""CSV records: the definition that users write, and the decoder that turns bytes into columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from slackwater.base.errors import refuse
from slackwater.formats.base import Decoded, Decoder, Flaw, Format, check_limit
from slackwater.formats.csv.columns import to_type
from slackwater.formats.csv.records import Dialect, LineReader
from slackwater.formats.csv.split import Flags, split
from slackwater.formats.exact_rows import Row, with_rows
from slackwater.formats.schemas import SchemaSpec, as_schema, spark_type
from slackwater.formats.texts import to_texts

MAX_BYTES: Final = 1 << 20

_LONGEST: Final = 64 << 20
_BLOCK_ROWS: Final = 1 << 16


@dataclass(frozen=True, kw_only=True)
class CsvFormat(Format):
    """CSV records, one line each, with the columns of `schema` in order.

    Nothing is coerced: a record with a value of the wrong type, or with more or fewer values than columns, is a
    dead letter.
    """

    schema: pl.Schema = field(hash=False)
    dialect: Dialect
    max_bytes: int = MAX_BYTES

    def decoder(self) -> CsvDecoder:
        """Return a decoder for this format."""
        return CsvDecoder(self)

    def __str__(self) -> str:
        return "CSV"


def csv(
    schema: SchemaSpec,
    *,
    delimiter: str = ",",
    quote: str | None = '"',
    null: str = "",
    max_bytes: int = MAX_BYTES,
) -> CsvFormat:
    r"""Read records as lines of CSV: `csv("order_id string, amount double, placed_at timestamp")`.

    As in RFC 4180, a value may be quoted, and must be if it contains the delimiter, a quote (written twice) or a
    line break; `quote=None` disables quoting. An unquoted value equal to `null` is null, so by default `,,` is null
    and `,"",` an empty string. Numbers are written as in JSON, without blanks or leading zeros; times are ISO 8601,
    with an offset or in UTC; booleans are `true` and `false`; `binary` is base64. A line break after the last value
    is ignored.

    Header lines are not recognised: a header is read like any record, and is a dead letter if it does not match the
    column types. Records longer than `max_bytes` are dead letters.
    """
    columns = as_schema(schema)
    for name, dtype in columns.items():
        if dtype.is_nested():
            raise refuse("CSV_NESTED", name=name, dtype=spark_type(dtype, name))
    _check_mark("delimiter", delimiter)
    if quote is not None:
        _check_mark("quote", quote)
    if quote == delimiter:
        raise refuse("CSV_OPTION", what="quote", rule="a character other than `delimiter`", got=repr(quote))
    marks = {delimiter, quote, "\r", "\n"}
    if not isinstance(null, str) or not marks.isdisjoint(null):
        raise refuse("CSV_OPTION", what="null", rule="a string without delimiter, quote or line break", got=repr(null))
    check_limit("max_bytes", max_bytes, most=_LONGEST, default=MAX_BYTES)
    dialect = Dialect(delimiter=delimiter, quote=quote, null=null)
    return CsvFormat(schema=columns, dialect=dialect, max_bytes=max_bytes)


def _check_mark(what: str, got: object) -> None:
    rule = "one ASCII character other than a line break"
    if not isinstance(got, str) or len(got) != 1 or not got.isascii() or got in "\r\n\0":
        raise refuse("CSV_OPTION", what=what, rule=rule, got=repr(got))


class CsvDecoder(Decoder):
    """Decodes records of one CSV format; never raises, whatever the bytes.

    1. Records that are null, too long or not UTF-8 are set aside.
    2. All records are split at once, at the positions of delimiters and quotes, and patterns prove that the values have
       the declared types; the proven ones are converted column by column.
    3. The others are read one by one, exactly.

    The path a record takes affects only the speed, never the result.
    """

    def __init__(self, form: CsvFormat) -> None:
        self._format = form
        self._reader = LineReader(form.schema, form.dialect)

    def __reduce__(self) -> tuple[type[CsvDecoder], tuple[CsvFormat]]:
        return (type(self), (self._format,))

    def decode(self, payload: pl.Series) -> Decoded:
        """Decode a column of bytes into rows, and flaws for the records that could not be decoded."""
        texts = to_texts(payload, max_bytes=self._format.max_bytes)
        flaws = texts.flaws
        proven: Flags = np.zeros(len(payload), dtype=bool)
        frames = [pl.DataFrame(schema=self._format.schema)]
        for first in range(0, len(payload), _BLOCK_ROWS):
            rows = slice(first, first + _BLOCK_ROWS)
            frames.append(self._read_proven(texts.lines[rows], proven[rows]))
        exact: dict[int, Row | None] = dict.fromkeys(flaws)
        unproven = np.flatnonzero(~proven)
        for at, line in zip(unproven.tolist(), texts.lines.gather(unproven).to_list(), strict=True):
            if line is None:
                continue
            found = self._reader.read(line)
            exact[at] = None if isinstance(found, Flaw) else found
            if isinstance(found, Flaw):
                flaws[at] = found
        return Decoded.of(with_rows(pl.concat(frames, rechunk=True), exact), flaws)

    def _read_proven(self, lines: pl.Series, proven: Flags) -> pl.DataFrame:
        """Return the rows of the lines, and mark the lines proven valid; the rows of the others are meaningless."""
        parts = split(lines, len(self._format.schema), self._format.dialect)
        proven[:] = parts.proven
        columns = []
        for (name, dtype), texts in zip(self._format.schema.items(), parts.columns, strict=True):
            column, are_proven = to_type(texts, dtype)
            columns.append(column.alias(name))
            proven &= are_proven
        return pl.DataFrame(columns)
