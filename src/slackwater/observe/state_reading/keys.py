"""Keys as text: how a user enters one, and how one is shown so that it can be entered again."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from slackwater.base.errors import fault
from slackwater.engine.key_groups import group_of, labels
from slackwater.formats.schemas import spark_type
from slackwater.operators.step import KeyedStep


def key_types(spec: KeyedStep) -> pl.Schema:
    """Return the columns of a step's key."""
    schema = next(iter(spec.ports.values())).schema
    return pl.Schema({key: schema[key] for key in spec.keys})


def key_given(text: str, spec: KeyedStep) -> pl.DataFrame:
    """Return the key that a user entered as one row: `ada`, `user=ada`, `ada,3`, or `user=ada,shop=3`."""
    types = key_types(spec)
    values = _values(text, types.names())
    if values is None:
        raise fault("STATE_READ_KEY_COLUMNS", step=spec.name, columns=", ".join(types), got=text)
    return pl.DataFrame(
        [_series(column, dtype, values[column], spec.name) for column, dtype in types.items()], schema=types
    )


def key_text(values: Sequence[Any]) -> str:
    """Return the values of a key in the form that `key_given` accepts."""
    texts = [_text(value) for value in values]
    if len(texts) == 1:
        return texts[0]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(texts)
    return line.getvalue()


def label_of(key: pl.DataFrame, key_groups: int) -> int:
    """Return the label of a key's key group."""
    return labels(key_groups)[int(group_of(key, key.columns, key_groups)[0])]


def _values(text: str, columns: list[str]) -> dict[str, str] | None:
    """Return the text for each column; None if the number of values does not match."""
    # A single value may contain commas.
    parts = [text] if len(columns) == 1 else next(csv.reader([text]), [])
    if len(parts) != len(columns):
        return None
    named = dict(part.partition("=")[::2] for part in parts if "=" in part)
    if len(named) == len(parts) and {*named} == {*columns}:
        return named
    return dict(zip(columns, parts, strict=True))


def _series(column: str, dtype: pl.DataType, text: str, step: str) -> pl.Series:
    try:
        return pl.Series(column, [_value(text, dtype)], dtype=dtype, strict=True)
    except (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        wanted = f"{column} {spark_type(dtype)}"
        raise fault("STATE_READ_KEY_TYPE", step=step, column=wanted, got=text) from error


def _value(text: str, dtype: pl.DataType) -> Any:  # noqa: ANN401  a value of any column
    if dtype == pl.String:
        return text
    if text == "null":
        return None
    if dtype.is_numeric():
        return pl.Series([text.strip()]).cast(dtype, strict=True)[0]
    known: dict[type[pl.DataType], Callable[[str], Any]] = {
        pl.Date: date.fromisoformat,
        pl.Datetime: _moment,
        pl.Binary: bytes.fromhex,
    }
    return known.get(type(dtype), json.loads)(text)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _text(value: Any) -> str:  # noqa: ANN401  as above
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return json.dumps(value, default=str)
