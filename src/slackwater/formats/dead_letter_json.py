"""Dead letters as JSON objects, one per letter: the form of JSON lines and of the values of a Kafka topic.

The fields are those of `DEAD_LETTER_SCHEMA`. JSON has no bytes, so `payload`, `key` and header values are base64;
times are RFC 3339. Null stays null, and null headers remain distinct from an empty list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from slackwater.base.errors import fault
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA, HEADERS
from slackwater.formats.row_json import json_objects

_BYTES: Final = ("payload", "key")
_TIMES: Final = ("ingestion_time", "processed_at")
_NEEDED: Final = ("source", "partition", "offset", "step", "reason", "processed_at")
_SHOWN: Final = 80
_TEXT_HEADERS: Final = pl.List(pl.Struct({"name": pl.String(), "value": pl.String()}))
_WRITTEN: Final = pl.Struct(
    {
        **DEAD_LETTER_SCHEMA,
        **dict.fromkeys((*_BYTES, *_TIMES), pl.String()),
        "headers": _TEXT_HEADERS,
    }
)


def encode_letters(letters: pl.DataFrame) -> pl.Series:
    """Return each dead letter as a JSON object in a string."""
    return json_objects(letters.select(DEAD_LETTER_SCHEMA.names()))


def decode_letters(values: pl.Series, *, name: Callable[[int], str]) -> pl.DataFrame:
    """Decode dead letters from JSON objects, as bytes or strings; the inverse of `encode_letters`.

    A value that is not a dead letter raises a fault with its position, which `name` returns for the value's number.
    Unknown fields are ignored; `key`, `headers`, `payload`, `message` and `ingestion_time` may be missing.
    """
    try:
        return _decoded(values)
    except pl.exceptions.PolarsError:
        # Decode one by one, as the error does not say which value it was.
        for number in range(len(values)):
            try:
                _decoded(values[number : number + 1])
            except pl.exceptions.PolarsError as error:
                cause = str(error).strip().partition("\n")[0]
                got = f"{values[number]!r:.{_SHOWN}} ({cause:.{2 * _SHOWN}})"
                raise fault("DEAD_LETTER_JSON", place=name(number), got=got) from error
        raise


def _decoded(values: pl.Series) -> pl.DataFrame:
    if not len(values):
        return DEAD_LETTER_SCHEMA.to_frame()
    texts = values.cast(pl.String).str.strip_chars()
    # Polars reads all values as one list, where an empty value would be no item and `{},{}` would be two.
    if not (texts.str.starts_with("{") & texts.str.ends_with("}")).fill_null(value=False).all():
        raise pl.exceptions.ComputeError("not a JSON object")
    fields = texts.str.json_decode(_WRITTEN).struct.unnest()
    if fields.height != len(values):
        raise pl.exceptions.ComputeError("more than one JSON object")
    missing = [name for name in _NEEDED if fields[name].null_count()]
    if missing:
        raise pl.exceptions.ComputeError(f"without {', '.join(missing)}")
    value = pl.element().struct.field("value").str.decode("base64")
    headers = pl.col("headers").list.eval(pl.struct(pl.element().struct.field("name"), value)).cast(HEADERS)
    times = pl.col(_TIMES).str.to_datetime("%+", time_unit="us", time_zone="UTC")
    return fields.with_columns(pl.col(_BYTES).str.decode("base64"), headers, times).cast(DEAD_LETTER_SCHEMA)
