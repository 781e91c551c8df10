"""A store's answers as typed columns; an answer that does not fit is an error of its own key only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn

import polars as pl

from slackwater.connectors.lookup import Answer, Refused, excerpt
from slackwater.formats.base import Format
from slackwater.formats.undecoded import decoder_of

KEY, STATUS, MESSAGE = "__key", "__status", "__message"
FOUND, MISSING, FAILED, UNFIT = range(4)
"""The status of a key: the store has it; does not have it; could not be asked; gave an answer that does not fit."""
_LONGEST: Final = 1_000
_NOT_STRICT: Final = (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


def answers_schema(key_type: pl.DataType, output: pl.Schema) -> pl.Schema:
    """Return the columns of a frame of answers: the key, its status and message, and the looked-up columns."""
    return pl.Schema({KEY: key_type, STATUS: pl.UInt8(), MESSAGE: pl.String(), **output})


def fitted(
    keys: Sequence[Any], answers: Mapping[Any, Answer], form: Format, *, key_type: pl.DataType, output: pl.Schema
) -> pl.DataFrame:
    """Return the answers for `keys` as a frame; a key without an answer is missing."""
    given = [answers.get(key) for key in keys]
    status, message = [MISSING] * len(keys), [None] * len(keys)  # type: list[int], list[str | None]
    columns = pl.DataFrame(schema=output).clear(len(keys))
    unfit: dict[int, str] = {}
    for at, answer in enumerate(given):
        if answer is not None:
            status[at] = FOUND
        if isinstance(answer, Refused):
            unfit[at] = answer.message
        elif answer is not None and not isinstance(answer, bytes | Mapping):
            unfit[at] = f"an answer is a mapping of columns to values; got {excerpt(answer)}"
    texts = [answer if isinstance(answer, bytes) else None for answer in given]
    if any(text is not None for text in texts):
        columns = _decoded(texts, form, output, unfit)
    if any(isinstance(answer, Mapping) for answer in given):
        columns = _with_values(columns, given, output, unfit)
    for at, why in unfit.items():
        status[at], message[at] = UNFIT, why[:_LONGEST]
    known = pl.DataFrame(
        {KEY: pl.Series(keys, dtype=key_type), STATUS: status, MESSAGE: message},
        schema={KEY: key_type, STATUS: pl.UInt8(), MESSAGE: pl.String()},
    )
    return known.hstack(columns)


def failed(keys: Mapping[Any, str], *, key_type: pl.DataType, output: pl.Schema) -> pl.DataFrame:
    """Return keys whose requests failed, with the reasons, as a frame of answers."""
    rows = {KEY: list(keys), MESSAGE: [why[:_LONGEST] for why in keys.values()]}
    frame = pl.DataFrame(rows, schema={KEY: key_type, MESSAGE: pl.String()})
    nulls = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in output.items()]
    return frame.select(KEY, pl.lit(FAILED, dtype=pl.UInt8()).alias(STATUS), MESSAGE, *nulls)


def _decoded(texts: list[bytes | None], form: Format, output: pl.Schema, unfit: dict[int, str]) -> pl.DataFrame:
    """Return the columns decoded from answers given as bytes; decoding errors are added to `unfit`."""
    decoded = decoder_of(form).decode(pl.Series(texts, dtype=pl.Binary()))
    unfit.update({at: why for at, _, why in decoded.bad.iter_rows() if texts[at] is not None})
    return decoded.frame.select(output.names())


def _with_values(columns: pl.DataFrame, given: list[Answer], output: pl.Schema, unfit: dict[int, str]) -> pl.DataFrame:
    """Return `columns` with the values of answers given as mappings; values of the wrong type are added to `unfit`."""
    places = [at for at, answer in enumerate(given) if isinstance(answer, Mapping)]
    made = []
    for name, dtype in output.items():
        values = [_value(given[at], name) for at in places]
        try:
            made.append(_series(name, values, dtype))
        except _NOT_STRICT:
            made.append(_one_by_one(name, values, dtype, places, unfit))
    own = pl.DataFrame(made).with_columns(pl.Series("__at", places, dtype=pl.UInt32()))
    others = columns.with_columns(pl.int_range(pl.len(), dtype=pl.UInt32()).alias("__at"))
    others = others.filter(~pl.col("__at").is_in(places))
    return pl.concat([others, own.select(others.columns)]).sort("__at").drop("__at")


def _value(answer: Answer, name: str) -> Any:  # noqa: ANN401  whatever a user's function returned
    assert isinstance(answer, Mapping)
    return answer.get(name)


def _series(name: str, values: list[Any], dtype: pl.DataType) -> pl.Series:
    """Return the values as a series of exactly this type; raises if one would have to be changed."""
    if dtype.is_numeric() or dtype.is_temporal() or dtype.is_nested():
        for value in values:
            _check_value(value, dtype)
    made = pl.Series(name, values, dtype=dtype, strict=True)
    if made.dtype != dtype:
        raise TypeError(f"it was taken for {made.dtype}")
    return made


def _check_value(value: object, dtype: Any) -> None:  # noqa: ANN401  inner types may be classes
    """Raise for a value that Polars would accept but change."""
    if value is None:
        return
    if isinstance(dtype, pl.List):
        for item in value if isinstance(value, list | tuple) else _no(value):
            _check_value(item, dtype.inner)
        return
    if isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            _check_value(value.get(field.name) if isinstance(value, Mapping) else _no(value), field.dtype)
        return
    if not (dtype.is_numeric() or dtype.is_temporal()):
        return
    if isinstance(value, bool) or (dtype.is_temporal() and isinstance(value, int | float)):
        raise TypeError("it would be changed")
    if isinstance(dtype, pl.Decimal):
        exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
        if isinstance(value, float) or not isinstance(exponent, int) or -exponent > dtype.scale:
            raise ValueError("it would be rounded")


def _no(value: object) -> NoReturn:
    raise TypeError(f"it is a {type(value).__name__}")


def _one_by_one(
    name: str, values: list[Any], dtype: pl.DataType, places: list[int], unfit: dict[int, str]
) -> pl.Series:
    good: list[Any] = []
    for at, value in zip(places, values, strict=True):
        try:
            good += _series(name, [value], dtype).to_list()
        except _NOT_STRICT:
            good.append(None)
            unfit.setdefault(at, f"column `{name}` is declared {dtype}; got {excerpt(value)}")
    return pl.Series(name, good, dtype=dtype)
