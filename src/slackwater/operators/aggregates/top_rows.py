"""The rows with the largest values of a column."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import polars as pl

from slackwater.base.errors import refuse
from slackwater.operators.aggregates.base import Aggregate, gathered, is_ordered, part, state
from slackwater.operators.aggregates.inputs import Expression, as_expr, input_type
from slackwater.operators.aggregates.ragged import first_of_each, flat, joined, pick


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Top(Aggregate):
    """The `n` rows with the largest `by`, largest first: `column` of each, or the whole row as a struct.

    Ties are broken by event time, then by position in the log, earlier first. Rows in which `by` is null
    or NaN, or `column` is null, are skipped. The state is five lists of at most `n` items: the values,
    what they are sorted by, and their places.
    """

    name: ClassVar[str] = "top"
    is_trusted: ClassVar[bool] = True
    may_stream: ClassVar[bool] = False
    n: int
    by: Expression
    column: Expression | None = None
    columns: tuple[str, ...] = field(default=(), repr=False)
    is_float: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or self.n < 1:
            raise refuse("TOP_N", got=self.n)

    def inputs(self) -> list[pl.Expr]:
        return [as_expr(self.by), pl.all() if self.column is None else as_expr(self.column)]

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        by = input_type(self.by, schema, reader=self.describe())
        if not is_ordered(by):
            wants = "an orderable `by`"
            raise refuse("AGGREGATE_INPUT_TYPE", aggregate=self.describe(), wants=wants, got=by)
        if self.column is not None:
            return pl.List(input_type(self.column, schema, reader=self.describe()))
        return pl.List(pl.Struct({name: schema[name] for name in _visible(schema)}))

    def bind(self, schema: pl.Schema) -> Self:
        by = input_type(self.by, schema, reader=self.describe())
        return replace(self, columns=_visible(schema), is_float=by.is_float())

    def prepare(self, alias: str) -> list[pl.Expr]:
        by = as_expr(self.by)
        by = by.fill_nan(None) if self.is_float else by
        value = pl.struct(self.columns) if self.column is None else as_expr(self.column)
        wanted = by.is_not_null() if self.column is None else by.is_not_null() & value.is_not_null()
        rows = {"~by": by, "~value": value, "~wanted": wanted}
        return [expr.alias(part(alias, name)) for name, expr in rows.items()]

    def partial(self, alias: str) -> list[pl.Expr]:
        kept = {"by": state(alias, "~by"), "values": state(alias, "~value")}
        kept |= {"ts": pl.col("__ts"), "part": pl.col("__part"), "off": pl.col("__off")}
        return gathered(alias, kept, where=state(alias, "~wanted"))

    def merge(self, alias: str) -> list[pl.Expr]:
        return [joined(state(alias, key)) for key in ("by", "values", "ts", "part", "off")]

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        keys = ["by", "ts", "part", "off"]
        rows = flat(frame, {part(alias, key): key for key in keys})
        rows = rows.sort("row", *keys, descending=[False, True, False, False, False])
        columns = [part(alias, key) for key in ("values", *keys)]
        return pick(frame, columns, first_of_each(rows, self.n))

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(state(alias, "values").alias(alias))


def _visible(schema: pl.Schema) -> tuple[str, ...]:
    return tuple(name for name in schema.names() if not name.startswith("__"))
