"""Aggregates that keep values: lists, sets, the exact distinct count and the exact median.

Their state grows with the values of a key and window. Sketches (`approx_distinct`, `quantile`) do not.
"""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.operators.aggregates.base import ColumnAggregate, FloatAggregate, gathered, part, state
from slackwater.operators.aggregates.ragged import distinct, flat, joined, pick


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CollectList(ColumnAggregate):
    """All values of a column, ordered by event time and then by position in the log.

    The state is four lists: the values and their places. They are sorted only for the result.
    """

    name: ClassVar[str] = "collect_list"
    is_trusted: ClassVar[bool] = True
    may_stream: ClassVar[bool] = False

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        return pl.List(self.input_type(schema))

    def partial(self, alias: str) -> list[pl.Expr]:
        values = self.values(alias)
        kept = {"values": values, "ts": pl.col("__ts"), "part": pl.col("__part"), "off": pl.col("__off")}
        return gathered(alias, kept, where=values.is_not_null())

    def merge(self, alias: str) -> list[pl.Expr]:
        return [joined(state(alias, key)) for key in ("values", "ts", "part", "off")]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        places = flat(frame, {part(alias, key): key for key in ("ts", "part", "off")})
        frame = frame.with_columns(state(alias, "values").alias(alias))
        return pick(frame, [alias], places.sort("row", "ts", "part", "off"))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CollectSet(ColumnAggregate):
    """The distinct values of a column, smallest first."""

    name: ClassVar[str] = "collect_set"
    is_trusted: ClassVar[bool] = True
    may_stream: ClassVar[bool] = False

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        return pl.List(self.ordered_type(schema))

    def partial(self, alias: str) -> list[pl.Expr]:
        return [self.values(alias).drop_nulls().implode().alias(part(alias, "values"))]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [joined(state(alias, "values"))]

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return distinct(frame, part(alias, "values"))

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(state(alias, "values").alias(alias))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountDistinct(CollectSet):
    """The exact number of distinct values of a column."""

    name: ClassVar[str] = "count_distinct"

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        self.ordered_type(schema)
        return pl.Int64()

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(state(alias, "values").list.len().cast(pl.Int64).alias(alias))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Median(FloatAggregate):
    """The exact median of a column as Float64, the mean of the middle two for an even count; skips NaN."""

    name: ClassVar[str] = "median"

    def partial(self, alias: str) -> list[pl.Expr]:
        numbers = self.values(alias).cast(pl.Float64)
        return [numbers.drop_nans().drop_nulls().implode().alias(part(alias, "values"))]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [joined(state(alias, "values"))]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(state(alias, "values").list.median().alias(alias))
