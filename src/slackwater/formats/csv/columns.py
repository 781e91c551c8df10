"""Converts columns of text to their types, all values at once; leaves out values that are not proven valid."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.formats.json.kernel import duckdb_connection
from slackwater.formats.json.patterns import plain_pattern

_MOST_DIGITS: Final = 38


def to_type(texts: pl.Series, dtype: pl.DataType) -> tuple[pl.Series, NDArray[np.bool_]]:
    """Return the texts as values of a type, and which of them are proven to be such values; the others are null."""
    if isinstance(dtype, pl.String):
        return texts, np.ones(len(texts), dtype=bool)
    proven = texts.str.contains(f"^(?:{_pattern(dtype)})$").fill_null(value=True)
    if not proven.all():
        texts = pl.select(pl.when(proven).then(texts)).to_series()
    return _read(texts, dtype), proven.to_numpy()


def _pattern(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Decimal):
        whole = (dtype.precision or _MOST_DIGITS) - dtype.scale
        digits = f"(?:0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
        return f"-?{digits}" + (rf"(?:\.[0-9]{{1,{dtype.scale}}})?" if dtype.scale else "")
    return plain_pattern(dtype)


def _read(texts: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Convert proven texts to values."""
    if isinstance(dtype, pl.Boolean):
        return texts == "true"
    if isinstance(dtype, pl.Date):
        return texts.str.to_date("%Y-%m-%d", strict=True)
    if isinstance(dtype, pl.Binary):
        return texts.str.decode("base64", strict=True)
    if isinstance(dtype, pl.Float32):
        return texts.cast(pl.Float64).cast(dtype)  # via a double, as when records are read one by one
    if isinstance(dtype, pl.Datetime):
        return _times(texts, dtype)
    return texts.cast(dtype)


def _times(texts: pl.Series, dtype: pl.Datetime) -> pl.Series:
    table = pa.table({"text": texts.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())})
    read = duckdb_connection().from_arrow(table).project("CAST(text AS TIMESTAMPTZ) AS time").to_arrow_table()
    return pl.DataFrame(read)["time"].cast(dtype)
