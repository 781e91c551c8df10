"""Sum and mean."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

import polars as pl
from polars import selectors
from polars.exceptions import PolarsError

from slackwater.aggregates.base import ColumnAggregate, WindowFailedError, part, state

_WHOLE: Final = pl.Decimal(38, 0)
"""How sums of integers are kept: in 128 bits, which 64-bit values cannot fill, and in a type of Arrow's."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sum(ColumnAggregate):
    """The sum of a column: of integers and truth values Int64, of floats Float64, of decimals Decimal(38).

    A result that does not fit its type stops the job with the aggregate's name; it is never wrapped
    around, cut or nulled. The state is one of `int`, `float` or `decimal`; decimals have `about` as well,
    the same sum as a float, by which an overflow is seen.
    """

    name: ClassVar[str] = "sum"
    dtype: pl.DataType | None = field(default=None, repr=False)

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        dtype = self.number_type(schema)
        if isinstance(dtype, pl.Decimal):
            return pl.Decimal(38, dtype.scale)
        return pl.Float64() if dtype.is_float() else pl.Int64()

    def bind(self, schema: pl.Schema) -> Self:
        return replace(self, dtype=self.number_type(schema))

    @property
    def may_stream(self) -> bool:  # type: ignore[override]  # integers add up to the same in any order
        return self.dtype is not None and not self.dtype.is_float()

    def partial(self, alias: str) -> list[pl.Expr]:
        values, dtype = self.values(alias), self.dtype
        if dtype is None:
            message = f"{self!r} must be bound to the rows' schema before it reads rows"
            raise AssertionError(message)
        if dtype.is_float():
            sums = {"float": _sum(values.cast(pl.Float64))}
        elif isinstance(dtype, pl.Decimal):
            wide = values.cast(pl.Decimal(38, dtype.scale))
            sums = {"decimal": _sum(wide), "about": _sum(values.cast(pl.Float64))}
        else:
            sums = {"int": _sum(values.cast(pl.Int128)).cast(_WHOLE)}
        return [expr.alias(part(alias, kind)) for kind, expr in sums.items()]

    def merge(self, alias: str) -> list[pl.Expr]:
        # Which of them there are is known to the state alone.
        kinds = [part(alias, kind) for kind in ("int", "float", "decimal", "about")]
        return [_sum(selectors.by_name(kinds, require_all=False).as_expr())]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        [kind] = [kind for kind in ("int", "float", "decimal") if part(alias, kind) in frame.columns]
        total = frame[part(alias, kind)]
        if kind == "int":
            total = self._narrowed(frame, total, alias)
        elif isinstance(total.dtype, pl.Decimal):
            limit = 10.0 ** (38 - total.dtype.scale)
            lost = frame.filter(state(alias, "about").abs() >= limit)
            if lost.height:
                raise self._overflow(lost, alias, lost[part(alias, "about")][0], total.dtype)
        return frame.with_columns(total.alias(alias))

    def _narrowed(self, frame: pl.DataFrame, total: pl.Series, alias: str) -> pl.Series:
        try:
            return total.cast(pl.Int64)
        except PolarsError:
            is_lost = total.cast(pl.Int64, strict=False).is_null() & total.is_not_null()
            raise self._overflow(frame.filter(is_lost), alias, total.filter(is_lost)[0], pl.Int64()) from None

    def _overflow(self, lost: pl.DataFrame, alias: str, got: object, dtype: pl.DataType) -> Exception:
        facts = {"alias": alias, "aggregate": self.describe(), "got": got, "dtype": dtype}
        return WindowFailedError("SUM_OVERFLOW", lost[:1], **facts)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Mean(ColumnAggregate):
    """The arithmetic mean of a column, as Float64."""

    name: ClassVar[str] = "mean"
    may_stream: ClassVar[bool] = False

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        self.number_type(schema)
        return pl.Float64()

    def partial(self, alias: str) -> list[pl.Expr]:
        values = self.values(alias)
        return [
            values.count().cast(pl.Int64).alias(part(alias, "n")),
            values.cast(pl.Float64).sum().alias(part(alias, "sum")),
        ]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [state(alias, "n").sum(), state(alias, "sum").sum()]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        n = state(alias, "n")
        return frame.with_columns(pl.when(n > 0).then(state(alias, "sum") / n).alias(alias))


def _sum(values: pl.Expr) -> pl.Expr:
    """Return the sum of `values`, null if there are none (Polars would say zero)."""
    return pl.when(values.count() > 0).then(values.sum())
