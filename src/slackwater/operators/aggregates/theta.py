"""The approximate number of distinct values, from a sketch of the smallest hashes."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.stable_hash import hash_expr
from slackwater.operators.aggregates.base import ColumnAggregate, part, state
from slackwater.operators.aggregates.ragged import distinct, joined

_LEAST_K = 16


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ApproxDistinct(ColumnAggregate):
    """The number of distinct values, exact up to `k` - 1 of them and estimated above.

    The state is the `k` smallest distinct stable hashes (a KMV sketch), a set that does not depend on the
    order and grouping of the rows. With the k-th smallest hash at the fraction f of the hash range,
    the estimate is (k - 1) / f; its standard error is 1 / sqrt(k - 2), 1.6 % for 4096.
    """

    name: ClassVar[str] = "approx_distinct"
    is_trusted: ClassVar[bool] = True
    may_stream: ClassVar[bool] = False
    k: int = 4096

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < _LEAST_K:
            raise refuse("APPROX_DISTINCT_K", least=_LEAST_K, got=self.k)

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        self.input_type(schema)
        return pl.Int64()

    def prepare(self, alias: str) -> list[pl.Expr]:
        [value] = self.inputs()
        return [pl.when(value.is_not_null()).then(hash_expr(value)).alias(part(alias, "~hash"))]

    def partial(self, alias: str) -> list[pl.Expr]:
        return [state(alias, "~hash").drop_nulls().implode().alias(part(alias, "hashes"))]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [joined(state(alias, "hashes"))]

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return distinct(frame, part(alias, "hashes"), most=self.k)

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        hashes = state(alias, "hashes")
        fraction = (hashes.list.last().cast(pl.Float64) + 1) / 2.0**64
        estimate = ((self.k - 1) / fraction).round().cast(pl.Int64)
        count = hashes.list.len().cast(pl.Int64)
        return frame.with_columns(pl.when(count < self.k).then(count).otherwise(estimate).alias(alias))
