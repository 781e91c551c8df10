"""Computing many aggregates over one frame: rows to states, states to merged states, states to results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import polars as pl

from slackwater.operators.aggregates.base import Aggregate

Aggregates = Mapping[str, Aggregate]
_Schema = tuple[tuple[str, pl.DataType], ...]
_Pairs = tuple[tuple[str, Aggregate], ...]

STREAM_FROM: Final = 50_000
"""The number of rows from which Polars' streaming engine pays off, because it takes longer to start."""
_HIDDEN: Final = {"__ts": pl.Int64(), "__part": pl.String(), "__off": pl.Int64()}


def bind(schema: pl.Schema, aggregates: Aggregates) -> dict[str, Aggregate]:
    """Return the aggregates bound to rows of `schema`, as `prepare` and `partial` require."""
    return _bound(tuple(schema.items()), tuple(aggregates.items()))


def combine_rows(
    rows: pl.DataFrame, by: list[str], aggregates: Aggregates, extra: list[pl.Expr] | None = None
) -> pl.DataFrame:
    """Return one row per group of `by` with the states of the aggregates, and the aggregations `extra`.

    The groups come in no particular order, but their content is the same in every run, to the bit.
    """
    bound = bind(rows.schema, aggregates)
    partials = [expr for alias, aggregate in bound.items() for expr in aggregate.partial(alias)]
    streams = rows.height >= STREAM_FROM and all(aggregate.may_stream for aggregate in bound.values())
    grouped = (
        rows.lazy()
        .with_columns(prepared(bound))
        .group_by(by)
        .agg(*(extra or []), *partials)
        .collect(engine="streaming" if streams else "in-memory")
    )
    return compact(grouped, bound)


def merge_states(
    states: pl.DataFrame, by: list[str], aggregates: Aggregates, extra: list[pl.Expr] | None = None
) -> pl.DataFrame:
    """Return one row per group of `by` with the merged states, and the aggregations `extra`.

    Groups come in the order of their first rows, and states are merged in the order of the rows.
    """
    merges = [expr for alias, aggregate in aggregates.items() for expr in aggregate.merge(alias)]
    merged = states.group_by(by, maintain_order=True).agg(*(extra or []), *merges)
    return compact(merged, aggregates)


def compact(frame: pl.DataFrame, aggregates: Aggregates) -> pl.DataFrame:
    """Return `frame` with the states in final form, as required after `partial` or `merge` expressions.

    State columns come last and always in the same order, so that states can be concatenated.
    """
    for alias, aggregate in aggregates.items():
        frame = aggregate.compact(frame, alias)
    states = state_columns(frame, aggregates)
    others = [name for name in frame.columns if name not in set(states)]
    return frame.select(*others, *states)


def finish(states: pl.DataFrame, aggregates: Aggregates) -> pl.DataFrame:
    """Return `states` with a result column for each alias instead of the state columns."""
    names = set(state_columns(states, aggregates))
    for alias, aggregate in aggregates.items():
        states = aggregate.finish(states, alias)
    others = [name for name in states.columns if name not in names and name not in aggregates]
    return states.select(*others, *aggregates)


def state_columns(frame: pl.DataFrame, aggregates: Aggregates) -> list[str]:
    """Return the names of the state columns in `frame`, by alias in the order given, then by name."""
    names = sorted(frame.columns)
    return [name for alias in aggregates for name in names if name.rpartition(".")[0] == f"__{alias}"]


def state_schema(schema: pl.Schema, aggregates: Aggregates) -> pl.Schema:
    """Return the types of the state columns for rows of `schema`."""
    return _empty_state(tuple(schema.items()), tuple(aggregates.items())).schema


def empty_state(schema: pl.Schema, aggregates: Aggregates, n: int) -> pl.DataFrame:
    """Return `n` state rows that represent no input rows."""
    one = _empty_state(tuple(schema.items()), tuple(aggregates.items()))
    return one[np.zeros(n, dtype=np.int64)]


@lru_cache(maxsize=64)
def _bound(schema: _Schema, pairs: _Pairs) -> dict[str, Aggregate]:
    """Bind the aggregates; cached, because determining the type of an expression takes milliseconds per chunk."""
    return {alias: aggregate.bind(pl.Schema(schema)) for alias, aggregate in pairs}


@lru_cache(maxsize=64)
def _empty_state(schema: _Schema, pairs: _Pairs) -> pl.DataFrame:
    rows = pl.DataFrame(schema=_HIDDEN | dict(schema))
    bound = bind(rows.schema, dict(pairs))
    partials = [expr for alias, aggregate in bound.items() for expr in aggregate.partial(alias)]
    return compact(rows.with_columns(prepared(bound)).select(partials), bound)


def prepared(aggregates: Aggregates) -> list[pl.Expr]:
    """Return the columns that the bound `aggregates` compute for each row before rows are grouped."""
    return [expr for alias, aggregate in aggregates.items() for expr in aggregate.prepare(alias)]
