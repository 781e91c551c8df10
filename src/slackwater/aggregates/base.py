"""The contract of aggregates: rows become state, states merge, and a state becomes a result.

    rows --prepare, partial--> state --merge--> state --finish--> result
                                 `---- compact ----'

All steps are Polars expressions or whole-frame operations, none walks over rows (a user's own
accumulator class aside). The state of an alias is the columns `__{alias}.{part}`; their types depend on
the types of the rows alone. States merge in any grouping and give the same result, up to the rounding
of floats. Null inputs are rows, but no aggregate except `count()` looks at them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import polars as pl

from slackwater.aggregates.inputs import Expression, as_expr, input_type, text
from slackwater.errors import RunError, UnplacedError, refuse, render
from slackwater.ground.times import MIN_MS, render_time

ORDER = ("__ts", "__part", "__off")
"""The hidden columns that put rows in order: event time, then position in the log."""


class WindowFailedError(UnplacedError):
    """What an aggregate cannot compute of the rows of a key's window; `row` is that window among states."""

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

    Two are equal only if they are the same object: an expression of Polars cannot be compared.
    """

    name: ClassVar[str]
    may_stream: ClassVar[bool] = True
    """Whether Polars' streaming engine may build the partial state.

    It is the faster engine for small states, but it adds rows up in another order in every run. A batch
    that is run again must give the same bits, so sums of floats, which depend on the order, may not.
    """

    @abstractmethod
    def inputs(self) -> list[pl.Expr]:
        """Return the expressions over a row's columns that it reads."""

    @abstractmethod
    def output_type(self, schema: pl.Schema) -> pl.DataType:
        """Return the result's type for rows of `schema`; refuses inputs that it cannot take."""

    def bind(self, schema: pl.Schema) -> Self:  # noqa: ARG002  most aggregates read all types alike
        """Return the aggregate for rows of `schema`; to be called before `prepare` and `partial`."""
        return self

    def prepare(self, alias: str) -> list[pl.Expr]:  # noqa: ARG002  for subclasses
        """Return the row-level columns, named `__{alias}.~{part}`, that `partial` needs."""
        return []

    @abstractmethod
    def partial(self, alias: str) -> list[pl.Expr]:
        """Return the aggregations over rows and prepared columns that give the state."""

    @abstractmethod
    def merge(self, alias: str) -> list[pl.Expr]:
        """Return the aggregations over states that give the merged state; also used in `rolling`."""

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:  # noqa: ARG002  for subclasses
        """Return `frame` with its state columns tidied after `partial` or `merge`, its rows in place."""
        return frame

    @abstractmethod
    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        """Return `frame` with the results added as column `alias`, its rows in place."""

    def describe(self) -> str:
        """Return the aggregate as text, the same in every run."""
        values = [(field.name, getattr(self, field.name)) for field in fields(self) if field.repr]
        words = [
            value if name == "column" else f"{name}={value}"
            for name, value in ((n, text(v) if isinstance(v, pl.Expr) else v) for n, v in values)
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
        """Return the type of what it reads."""
        return input_type(self.column, schema, reader=self.describe())

    def number_type(self, schema: pl.Schema) -> pl.DataType:
        """Return the type of what it reads, refused unless it is a number or a truth value."""
        dtype = self.input_type(schema)
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            raise self.unsuitable(dtype, wants="numbers")
        return dtype

    def unsuitable(self, dtype: pl.DataType, *, wants: str) -> Exception:
        """Return the refusal of an input of type `dtype`."""
        return refuse("AGGREGATE_INPUT_TYPE", aggregate=self.describe(), wants=wants, got=dtype)

    def prepare(self, alias: str) -> list[pl.Expr]:  # noqa: D102  as in the class above
        # An expression is evaluated on rows, not on groups: there a literal would count once a group.
        expr = as_expr(self.column)
        return [] if expr.meta.is_column() else [expr.alias(part(alias, "~input"))]

    def values(self, alias: str) -> pl.Expr:
        """Return the column that `partial` reads."""
        expr = as_expr(self.column)
        return expr if expr.meta.is_column() else state(alias, "~input")


def part(alias: str, name: str) -> str:
    """Return the name of a state column."""
    return f"__{alias}.{name}"


def state(alias: str, name: str) -> pl.Expr:
    """Return a state column."""
    return pl.col(part(alias, name))


def gathered(alias: str, columns: dict[str, pl.Expr], *, where: pl.Expr) -> list[pl.Expr]:
    """Return the aggregations that gather `columns` of the rows `where` it is true into lists."""
    return [column.filter(where).implode().alias(part(alias, name)) for name, column in columns.items()]


def is_ordered(dtype: pl.DataType) -> bool:
    """Return whether values of `dtype` have a smallest and a largest one."""
    return not (dtype.is_nested() or isinstance(dtype, pl.Categorical | pl.Object) or dtype == pl.Null)
