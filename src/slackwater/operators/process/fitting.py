"""Fitting frames returned by the user's code to the declared columns, types and keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from slackwater.base.errors import near_miss
from slackwater.base.keys import join_on_keys
from slackwater.base.stable_hash import hash_columns
from slackwater.formats.schemas import fits, spark_type
from slackwater.operators.process.failures import MisfitError


def fitted(made: Any, types: Mapping[str, pl.DataType], what: str) -> pl.DataFrame:  # noqa: ANN401  the user's own
    """Return a frame with exactly the columns of `types`, or raise `MisfitError`; `what` names it in errors.

    Other columns are dropped. A value is never truncated, rounded or parsed to make it fit.
    """
    if not isinstance(made, pl.DataFrame):
        hint = "; collect it first" if isinstance(made, pl.LazyFrame) else ""
        raise MisfitError(f"{what} must be a Polars DataFrame; got {type(made).__name__}{hint}")
    for name in types:
        if name not in made.columns:
            has = ", ".join(made.columns) or "none"
            raise MisfitError(f"{what} must have a column `{name}`{near_miss(name, made.columns)}; its columns: {has}")
    return made.select(_column(made[name], dtype, what) for name, dtype in types.items())


def check_keys(frame: pl.DataFrame, keys: pl.DataFrame, what: str) -> None:
    """Raise `MisfitError` if a row of `frame` has a key that is not among `keys`."""
    strange = join_on_keys(frame, keys, keys.columns, how="anti")
    if strange.height:
        raise MisfitError(f"{what} must have keys of the rows only; got {_key(strange, keys.columns)}")


def check_distinct_keys(frame: pl.DataFrame, keys: Iterable[str], what: str) -> None:
    """Raise `MisfitError` if two rows of `frame` have the same key."""
    names = list(keys)
    twice = frame.filter(frame.select(names).is_duplicated())
    if twice.height:
        raise MisfitError(f"{what} must have one row for each key; got two for {_key(twice, names)}")


def check_unchanged(results: pl.DataFrame, rows: pl.DataFrame, columns: list[str]) -> None:
    """Raise `MisfitError` if the `columns` of a result are not those of one of `rows`.

    Results may be any selection of the rows, in any order: vectorised code filters, joins and sorts.
    """
    returned, given = results.select(columns), rows.select(columns)
    if returned.equals(given):
        return
    strange = results.filter(~np.isin(hash_columns(returned, columns), hash_columns(given, columns)))
    if strange.height:
        name = _changed(strange[:1], given, columns)
        raise MisfitError(
            f"results must be rows of the batch with the columns of `adds`, and not change another; got "
            f"{name}={strange[name][0]!r:.80}, which is not its event's; add it by another name, or use `output`"
        )


def _changed(row: pl.DataFrame, rows: pl.DataFrame, columns: list[str]) -> str:
    """Return the first column in which a row differs from those of `rows` that have its columns before that one."""
    return next(
        name
        for number, name in enumerate(columns, 1)
        if hash_columns(row, columns[:number])[0] not in hash_columns(rows, columns[:number])
    )


def _key(frame: pl.DataFrame, names: list[str]) -> str:
    first = frame.row(0, named=True)
    return ", ".join(f"{name}={first[name]!r:.80}" for name in names)


def _column(column: pl.Series, dtype: pl.DataType, what: str) -> pl.Series:
    if column.dtype == dtype:
        return column
    if not fits(column.dtype, dtype):
        wanted, name = spark_type(dtype), column.name
        raise MisfitError(f"column `{name}` of {what} takes {wanted}; got {column.dtype}: cast it")
    try:
        return column.cast(dtype, strict=True)
    except PolarsError as error:
        cause = str(error).strip().partition("\n")[0]
        raise MisfitError(f"column `{column.name}` of {what} takes {spark_type(dtype)}; {cause}") from error
