"""Variance and standard deviation."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from slackwater.base.errors import refuse
from slackwater.operators.aggregates.base import FloatAggregate, part, state


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Variance(FloatAggregate):
    """The variance of a column: squared deviations from the mean, summed and divided by `n - ddof`.

    The state is the count, the mean and the sum of squared deviations, merged by the method of Chan, Golub
    and LeVeque, so a large mean with a small spread loses no digits. Null for `ddof` values or fewer.
    """

    name: ClassVar[str] = "variance"
    ddof: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.ddof, int) or self.ddof < 0:
            raise refuse("AGGREGATE_DDOF", aggregate=self.describe(), got=self.ddof)

    def partial(self, alias: str) -> list[pl.Expr]:
        values = self.values(alias).cast(pl.Float64)
        n = values.count()
        return [
            n.cast(pl.Int64).alias(part(alias, "n")),
            values.mean().alias(part(alias, "mean")),
            (values.var(ddof=0) * n).alias(part(alias, "squares")),
        ]

    def merge(self, alias: str) -> list[pl.Expr]:
        n, mean, squares = state(alias, "n"), state(alias, "mean"), state(alias, "squares")
        total = n.sum()
        common = pl.when(total > 0).then((mean * n).sum() / total)
        return [
            total,
            common.alias(part(alias, "mean")),
            squares.sum() + (n * (mean - common).pow(2)).sum(),
        ]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        n = state(alias, "n")
        result = self._result(state(alias, "squares") / (n - self.ddof))
        return frame.with_columns(pl.when(n > self.ddof).then(result).alias(alias))

    def _result(self, variance: pl.Expr) -> pl.Expr:
        return variance


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StdDev(Variance):
    """The standard deviation of a column: the square root of its variance."""

    name: ClassVar[str] = "stddev"

    def _result(self, variance: pl.Expr) -> pl.Expr:
        return variance.sqrt()
