"""Aggregates: what a window computes from its rows. All of them are mergeable and work on whole columns.

A `column` is a column name, a SQL string or a Polars expression. Rows in which it is null are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import refuse
from slackwater.operators.aggregates.base import Aggregate
from slackwater.operators.aggregates.by_time import Ewma, First, Last
from slackwater.operators.aggregates.collected import CollectList, CollectSet, CountDistinct, Median
from slackwater.operators.aggregates.ddsketch import Quantile, Quantiles
from slackwater.operators.aggregates.inputs import Expression
from slackwater.operators.aggregates.simple import Count, Max, Min
from slackwater.operators.aggregates.spread import StdDev, Variance
from slackwater.operators.aggregates.sums import Mean, Sum
from slackwater.operators.aggregates.theta import ApproxDistinct
from slackwater.operators.aggregates.top_rows import Top
from slackwater.operators.aggregates.user_defined import Accumulated, Accumulator

__all__ = [
    "Accumulator",
    "Aggregate",
    "accumulator",
    "approx_distinct",
    "collect_list",
    "collect_set",
    "count",
    "count_distinct",
    "ewma",
    "first",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "quantiles",
    "stddev",
    "sum",
    "top",
    "variance",
]


def count(column: Expression | None = None) -> Aggregate:
    """Count rows, or the rows in which `column` is not null; Int64."""
    return Count(column=column)


def count_distinct(column: Expression) -> Aggregate:
    """Count distinct values exactly; Int64. The state holds all of them."""
    return CountDistinct(column=column)


def approx_distinct(column: Expression, k: int = 4096) -> Aggregate:
    """Estimate the number of distinct values: exact below `k`, then within about 1 / sqrt(k); Int64."""
    return ApproxDistinct(column=column, k=k)


def sum(column: Expression) -> Aggregate:
    """Sum the values; Int64, Float64 or Decimal(38). A window whose sum overflows is a dead letter."""
    return Sum(column=column)


def min(column: Expression) -> Aggregate:
    """Return the smallest value."""
    return Min(column=column)


def max(column: Expression) -> Aggregate:
    """Return the largest value."""
    return Max(column=column)


def mean(column: Expression) -> Aggregate:
    """Compute the arithmetic mean; Float64."""
    return Mean(column=column)


def variance(column: Expression, ddof: int = 1) -> Aggregate:
    """Compute the variance, of a sample unless `ddof` is 0; Float64."""
    return Variance(column=column, ddof=ddof)


def stddev(column: Expression, ddof: int = 1) -> Aggregate:
    """Compute the standard deviation, of a sample unless `ddof` is 0; Float64."""
    return StdDev(column=column, ddof=ddof)


def first(column: Expression) -> Aggregate:
    """Return the value with the earliest event time."""
    return First(column=column)


def last(column: Expression) -> Aggregate:
    """Return the value with the latest event time."""
    return Last(column=column)


def collect_list(column: Expression) -> Aggregate:
    """Collect all values in event-time order."""
    return CollectList(column=column)


def collect_set(column: Expression) -> Aggregate:
    """Collect the distinct values, smallest first."""
    return CollectSet(column=column)


def top(n: int, *, by: Expression, column: Expression | None = None) -> Aggregate:
    """Return the `n` rows with the largest `by`, largest first: `column` of each, or the row as a struct."""
    return Top(n=n, by=by, column=column)


def quantile(column: Expression, q: float, relative_error: float = 0.01) -> Aggregate:
    """Estimate the quantile `q` within `relative_error` of its value; Float64."""
    return Quantile(column=column, q=(q,), relative_error=relative_error)


def quantiles(column: Expression, q: Sequence[float], relative_error: float = 0.01) -> Aggregate:
    """Estimate several quantiles at once, from one sketch; a list of Float64."""
    if isinstance(q, str) or not isinstance(q, Iterable):
        raise refuse("QUANTILES_EMPTY", aggregate="quantiles", got=repr(q))
    return Quantiles(column=column, q=tuple(q), relative_error=relative_error)


def median(column: Expression) -> Aggregate:
    """Compute the exact median; Float64. The state holds all values."""
    return Median(column=column)


def ewma(column: Expression, half_life: Duration) -> Aggregate:
    """Compute the exponentially weighted mean; a value's weight halves every `half_life`; Float64."""
    return Ewma(column=column, half_life_ms=duration_ms(half_life, what="half_life of ewma"))


def accumulator(cls: type[Accumulator], column: Expression) -> Aggregate:
    """Aggregate with your own `Accumulator` class."""
    return Accumulated(cls=cls, column=column)
