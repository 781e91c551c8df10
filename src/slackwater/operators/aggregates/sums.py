"""Sum and mean."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar, Final, Self

import polars as pl
import pyarrow as pa
from polars import selectors
from polars.exceptions import PolarsError

from slackwater.operators.aggregates.base import ColumnAggregate, FloatAggregate, WindowFailedError, part, state

_WHOLE: Final = pl.Decimal(38, 0)
"""The type of integer sums in state: 128 bits, which sums of 64-bit values cannot overflow, in a type of Arrow's."""
_KINDS: Final = ("int", "float", "high", "low")
_CUT: Final = 10**18
_MOST_HIGH: Final = 10**20
"""The bound for the high part of a number of 38 digits, whose low part has eighteen."""
_OF_INTEGERS: Final = -1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sum(ColumnAggregate):
    """The sum of a column: Int64 for integers and Booleans, Float64 for floats, Decimal(38) for decimals.

    A result that does not fit its type is an error of its window, which becomes a dead letter; it is never wrapped,
    truncated or set to null. Intermediate sums need not fit. The state is `int` or `float`; or, for decimals and
    128-bit integers, the sums of their `high` and `low` digits, and `scale`.
    """

    name: ClassVar[str] = "sum"
    is_trusted: ClassVar[bool] = True
    dtype: pl.DataType | None = field(default=None, repr=False)

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        dtype = self.number_type(schema)
        if isinstance(dtype, pl.Decimal):
            return pl.Decimal(38, dtype.scale)
        return pl.Float64() if dtype.is_float() else pl.Int64()

    def bind(self, schema: pl.Schema) -> Self:
        return replace(self, dtype=self.number_type(schema))

    @property
    def may_stream(self) -> bool:  # type: ignore[override]  # integers have the same sum in any order
        return self.dtype is not None and not self.dtype.is_float()

    def partial(self, alias: str) -> list[pl.Expr]:
        values, dtype = self.values(alias), self.dtype
        if dtype is None:
            message = f"{self!r} must be bound to the rows' schema before it reads rows"
            raise AssertionError(message)
        if dtype.is_float():
            sums = {"float": _sum(values.cast(pl.Float64))}
        elif isinstance(dtype, pl.Decimal):
            sums = _digits(values.cast(pl.Decimal(38, dtype.scale)).to_physical(), dtype.scale)
        elif isinstance(dtype, pl.Int128 | pl.UInt128):
            sums = _digits(values.cast(pl.Int128), _OF_INTEGERS)
        else:
            sums = {"int": _sum(values.cast(pl.Int128)).cast(_WHOLE)}
        return [expr.alias(part(alias, kind)) for kind, expr in sums.items()]

    def merge(self, alias: str) -> list[pl.Expr]:
        # Only the columns of the state say which of them exist.
        kinds = [part(alias, kind) for kind in _KINDS]
        scale = selectors.by_name(part(alias, "scale"), require_all=False).as_expr()
        return [_sum(selectors.by_name(kinds, require_all=False).as_expr()), scale.max()]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        if part(alias, "float") in frame.columns:
            return frame.with_columns(state(alias, "float").alias(alias))
        if part(alias, "int") in frame.columns:
            return frame.with_columns(self._narrowed(frame, frame[part(alias, "int")], alias).alias(alias))
        return frame.with_columns(self._joined(frame, alias).alias(alias))

    def _joined(self, frame: pl.DataFrame, alias: str) -> pl.Series:
        """Return the sums whose high and low digits were added separately."""
        cut = pl.lit(_CUT, dtype=pl.Int128)
        high, low = (state(alias, kind).cast(pl.Int128) for kind in ("high", "low"))
        whole = frame.select(high=high + low // cut, low=low % cut)
        least = (pl.col("high") == -_MOST_HIGH) & (pl.col("low") == 0)  # one digit too many
        is_lost = whole.select(~pl.col("high").is_between(-_MOST_HIGH, _MOST_HIGH - 1) | least).to_series()
        scale = frame[part(alias, "scale")].max()
        is_decimal = scale is not None and scale != _OF_INTEGERS
        dtype = pl.Decimal(38, int(scale)) if is_decimal else pl.Int64()  # type: ignore[arg-type]  # an Int8 column
        if is_lost.any():
            digits = whole.filter(is_lost).row(0)
            got = Decimal(digits[0] * _CUT + digits[1])
            raise self._overflow(frame.filter(is_lost), alias, _scaled(got, dtype), dtype)
        total = whole.select((pl.col("high") * cut + pl.col("low")).cast(_WHOLE).alias(alias)).to_series()
        return _moved(total, dtype) if isinstance(dtype, pl.Decimal) else self._narrowed(frame, total, alias)

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
class Mean(FloatAggregate):
    """The arithmetic mean of a column, as Float64."""

    name: ClassVar[str] = "mean"

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
    """Return the sum of `values`, or null if there are none (Polars returns zero)."""
    return pl.when(values.count() > 0).then(values.sum())


def _digits(values: pl.Expr, scale: int) -> dict[str, pl.Expr]:
    """Return the sums of the high and of the low digits, which do not overflow in a century of rows."""
    cut = pl.lit(_CUT, dtype=pl.Int128)
    sums = {"high": _sum(values // cut), "low": _sum(values % cut)}
    return {kind: expr.cast(_WHOLE) for kind, expr in sums.items()} | {"scale": pl.lit(scale, dtype=pl.Int8)}


def _moved(whole: pl.Series, dtype: pl.Decimal) -> pl.Series:
    """Return integers as decimals with the same digits."""
    digits: Any = whole.rechunk().to_arrow()
    moved = pa.Array.from_buffers(pa.decimal128(38, dtype.scale), len(digits), digits.buffers(), offset=digits.offset)
    return pl.Series(whole.name, pl.from_arrow(moved), dtype=dtype)


def _scaled(number: Decimal, dtype: pl.DataType) -> Decimal:
    sign, digits, _ = number.as_tuple()
    return Decimal((sign, digits, -dtype.scale)) if isinstance(dtype, pl.Decimal) else number
