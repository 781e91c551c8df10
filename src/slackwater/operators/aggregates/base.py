"""The contract of aggregates: rows become state, states merge, and a state becomes a result.

    rows --prepare, partial--> state --merge--> state --finish--> result
                                 `---- compact ----'

All steps are Polars expressions or whole-frame operations; none iterates over rows (except a user's
accumulator class). The state of an alias is the columns `__{alias}.{part}`; their types depend only on
the types of the rows. States can be merged in any grouping with the same result, up to the rounding
of floats. Rows with null inputs are skipped by every aggregate except `count()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import polars as pl

from slackwater.base.errors import RunError, UnplacedError, refuse, render
from slackwater.base.expressions import as_written
from slackwater.base.times import MIN_MS, render_time
from slackwater.operators.aggregates.inputs import Expression, as_expr, input_type

ORDER = ("__ts", "__part", "__off")
"""The hidden columns that rows are sorted by: event time, then position in the log."""


class WindowFailedError(UnplacedError):
    """Raised when an aggregate cannot be computed for a window of a key; `row` is the state row of that window."""

    def __init__(self, code: str, row: pl.DataFrame, **facts: object) -> None:
        super().__init__(code, render(code, **facts, where=""))
        self.row = row
        self.facts = facts

    def placed(self, step: str, keys: tuple[str, ...]) -> RunError:
        """Return the error with its step, key and window."""
        values = self.row.row(0, named=True)
        key = ", ".join(f"{name}={values[name]!r}" for name in keys if name in values)
        start = values.get("__start")
        window = "" if start is None or start <= MIN_MS else f", window from {render_time(start)}"
        where = f" in step `{step}`" + (f", key {key}" if key else "") + window
        return RunError(self.code, render(self.code, **self.facts, where=where))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Aggregate(ABC):
    """A mergeable summary of rows.

    Two aggregates are equal only if they are the same object, because Polars expressions cannot be compared.
    """

    name: ClassVar[str]
    may_stream: ClassVar[bool] = True
    """Whether Polars' streaming engine may build the partial state.

    It is faster for small states, but adds rows in a different order in every run. A replayed batch must
    give the same bits, so sums of floats, which depend on the order, must not use it.
    """
    is_trusted: ClassVar[bool] = False
    """Whether the methods are known to be correct; user-defined aggregates are tried, and their results checked."""

    @abstractmethod
    def inputs(self) -> list[pl.Expr]:
        """Return the expressions over a row's columns that the aggregate reads."""

    @abstractmethod
    def output_type(self, schema: pl.Schema) -> pl.DataType:
        """Return the type of the result for rows of `schema`, or reject inputs of an unsupported type."""

    def bind(self, schema: pl.Schema) -> Self:  # noqa: ARG002  most aggregates treat all types alike
        """Return the aggregate for rows of `schema`; call it before `prepare` and `partial`."""
        return self

    def prepare(self, alias: str) -> list[pl.Expr]:  # noqa: ARG002  for subclasses
        """Return the row-level columns, named `__{alias}.~{part}`, that `partial` needs."""
        return []

    @abstractmethod
    def partial(self, alias: str) -> list[pl.Expr]:
        """Return the aggregations over rows and prepared columns that compute the state."""

    @abstractmethod
    def merge(self, alias: str) -> list[pl.Expr]:
        """Return the aggregations over states that compute the merged state; also used in `rolling`."""

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:  # noqa: ARG002  for subclasses
        """Return `frame` with its state columns in final form after `partial` or `merge`, rows in the same order."""
        return frame

    @abstractmethod
    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        """Return `frame` with the results added as column `alias`, rows in the same order."""

    def describe(self) -> str:
        """Return the aggregate as text, the same in every run."""
        values = [(field.name, getattr(self, field.name)) for field in fields(self) if field.repr]
        words = [
            value if name == "column" else f"{name}={value}"
            for name, value in ((n, as_written(v) if isinstance(v, pl.Expr) else v) for n, v in values)
            if value is not None
        ]
        return f"{self.name}({', '.join(words)})"

    def __repr__(self) -> str:
        return self.describe()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ColumnAggregate(Aggregate):
    """An aggregate that reads one column, or one expression."""

    column: Expression

    def inputs(self) -> list[pl.Expr]:  # noqa: D102  as above
        return [as_expr(self.column)]

    def input_type(self, schema: pl.Schema) -> pl.DataType:
        """Return the type of the input."""
        return input_type(self.column, schema, reader=self.describe())

    def number_type(self, schema: pl.Schema) -> pl.DataType:
        """Return the type of the input, or reject it unless it is numeric or Boolean."""
        dtype = self.input_type(schema)
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            raise self.unsuitable(dtype, wants="numbers")
        return dtype

    def ordered_type(self, schema: pl.Schema) -> pl.DataType:
        """Return the type of the input, or reject it unless its values can be ordered."""
        dtype = self.input_type(schema)
        if not is_ordered(dtype):
            raise self.unsuitable(dtype, wants="orderable values")
        return dtype

    def unsuitable(self, dtype: pl.DataType, *, wants: str) -> Exception:
        """Return the error for an input of type `dtype`."""
        return refuse("AGGREGATE_INPUT_TYPE", aggregate=self.describe(), wants=wants, got=dtype)

    def prepare(self, alias: str) -> list[pl.Expr]:  # noqa: D102  as in the class above
        # An expression is evaluated on rows, not on groups, where a literal would count once per group.
        expr = as_expr(self.column)
        return [] if expr.meta.is_column() else [expr.alias(part(alias, "~input"))]

    def values(self, alias: str) -> pl.Expr:
        """Return the column that `partial` reads."""
        expr = as_expr(self.column)
        return expr if expr.meta.is_column() else state(alias, "~input")


class FloatAggregate(ColumnAggregate):
    """An aggregate of Slackwater's own that computes a Float64 from numbers, in the order of the rows."""

    may_stream: ClassVar[bool] = False
    is_trusted: ClassVar[bool] = True

    def output_type(self, schema: pl.Schema) -> pl.DataType:  # noqa: D102  as in the class above
        self.number_type(schema)
        return pl.Float64()


def part(alias: str, name: str) -> str:
    """Return the name of a state column."""
    return f"__{alias}.{name}"


def state(alias: str, name: str) -> pl.Expr:
    """Return a state column."""
    return pl.col(part(alias, name))


def gathered(alias: str, columns: dict[str, pl.Expr], *, where: pl.Expr) -> list[pl.Expr]:
    """Return the aggregations that collect `columns` of the rows that satisfy `where` into lists."""
    return [column.filter(where).implode().alias(part(alias, name)) for name, column in columns.items()]


def is_ordered(dtype: pl.DataType) -> bool:
    """Return whether values of `dtype` can be ordered."""
    return not (dtype.is_nested() or isinstance(dtype, pl.Categorical | pl.Object) or dtype == pl.Null)
