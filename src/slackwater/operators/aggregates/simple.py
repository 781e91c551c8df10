"""Count, minimum and maximum: aggregates whose state is the result."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.operators.aggregates.base import Aggregate, ColumnAggregate, part, state
from slackwater.operators.aggregates.inputs import Expression, as_expr, input_type


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Count(Aggregate):
    """The number of rows, or of those in which `column` is not null."""

    name: ClassVar[str] = "count"
    is_trusted: ClassVar[bool] = True
    column: Expression | None = None

    def inputs(self) -> list[pl.Expr]:
        return [] if self.column is None else [as_expr(self.column)]

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        if self.column is not None:
            input_type(self.column, schema, reader=self.describe())
        return pl.Int64()

    def prepare(self, alias: str) -> list[pl.Expr]:
        return [] if self.column is None else [as_expr(self.column).is_not_null().alias(part(alias, "~is"))]

    def partial(self, alias: str) -> list[pl.Expr]:
        found = pl.len() if self.column is None else state(alias, "~is").sum()
        return [found.cast(pl.Int64).alias(part(alias, "n"))]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [state(alias, "n").sum()]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(state(alias, "n").alias(alias))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Min(ColumnAggregate):
    """The smallest value; NaN only if there is nothing else."""

    name: ClassVar[str] = "min"
    is_trusted: ClassVar[bool] = True

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        return self.ordered_type(schema)

    def partial(self, alias: str) -> list[pl.Expr]:
        return [self._extreme(self.values(alias)).alias(part(alias, self.name))]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [self._extreme(state(alias, self.name))]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(state(alias, self.name).alias(alias))

    def _extreme(self, values: pl.Expr) -> pl.Expr:
        return values.min()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Max(Min):
    """The largest value; NaN only if there is nothing else."""

    name: ClassVar[str] = "max"

    def _extreme(self, values: pl.Expr) -> pl.Expr:
        return values.max()
