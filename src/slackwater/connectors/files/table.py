"""Tables in files: Parquet, and CSV with a header line."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from slackwater.base.errors import fault
from slackwater.connectors.sink import Unavailable
from slackwater.formats.schemas import normal_type

_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


def parquet_schema(path: str) -> pl.Schema:
    """Return the columns of a Parquet file."""
    _check_file(path)
    try:
        found = pl.read_parquet_schema(path)
    except _BROKEN as error:
        raise Unavailable(_words(error)) from error
    return pl.Schema({name: normal_type(dtype) for name, dtype in found.items()})


def read_parquet(path: str, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a Parquet file."""
    _check_file(path)
    try:
        frame = pl.read_parquet(path, use_pyarrow=False)
    except _BROKEN as error:
        raise Unavailable(_words(error)) from error
    return conformed(frame, schema, path)


def csv_schema(path: str, declared: pl.Schema) -> pl.Schema:
    """Return the columns in the header line of a CSV file, with their declared types; others are text."""
    _check_file(path)
    try:
        header = pl.read_csv(path, n_rows=0, infer_schema=False).columns
    except _BROKEN as error:
        raise Unavailable(_words(error)) from error
    return pl.Schema({name: declared.get(name, pl.String()) for name in header})


def read_csv(path: str, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a CSV file, by the names in its header line; a value of the wrong type is an error."""
    _check_file(path)
    try:
        texts = pl.read_csv(path, infer_schema=False)
    except _BROKEN as error:
        raise Unavailable(_words(error)) from error
    missing = [name for name in schema if name not in texts.columns]
    if missing:
        raise fault("TABLE_CHANGED", place=path, got=f"no column `{missing[0]}`")
    made = []
    for name, dtype in schema.items():
        values = _typed(texts[name], dtype)
        wrong = values.is_null() & texts[name].is_not_null()
        if wrong.any():
            row = int(wrong.arg_true()[0])
            facts = {"column": name, "dtype": dtype, "value": f"{texts[name][row]!r:.60}", "row": f"{row + 1:,}"}
            raise fault("TABLE_VALUE", place=path, **facts)
        made.append(values)
    return pl.DataFrame(made)


def _typed(texts: pl.Series, dtype: pl.DataType) -> pl.Series:
    if isinstance(dtype, pl.Boolean):
        known = texts.is_in(["true", "false"])
        return pl.select(pl.when(known).then(texts == "true").alias(texts.name)).to_series()
    if isinstance(dtype, pl.Datetime):
        return texts.str.to_datetime(time_unit="us", time_zone="UTC", strict=False).cast(dtype)
    if isinstance(dtype, pl.Date):
        return texts.str.to_date("%Y-%m-%d", strict=False)
    return texts.cast(dtype, strict=False)


def conformed(frame: pl.DataFrame, schema: pl.Schema, place: str) -> pl.DataFrame:
    """Return the columns of `schema`; raises if one is missing or has another type, because the plan relies on them."""
    for name, dtype in schema.items():
        if name not in frame.columns:
            raise fault("TABLE_CHANGED", place=place, got=f"no column `{name}`")
        if normal_type(frame.schema[name]) != dtype:
            raise fault("TABLE_CHANGED", place=place, got=f"column `{name}` of type {frame.schema[name]}, not {dtype}")
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def _check_file(path: str) -> None:
    if not Path(path).is_file():
        raise Unavailable("there is no such file")


def _words(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
