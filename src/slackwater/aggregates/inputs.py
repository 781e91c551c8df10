"""What an aggregate reads: one expression over the columns of a row, evaluated before rows are grouped."""

from __future__ import annotations

import polars as pl
from polars.exceptions import PolarsError

from slackwater.errors import refuse
from slackwater.expressions import Expression, as_expr, result_schema

__all__ = ["Expression", "as_expr", "input_type", "text"]


def text(expression: Expression) -> str:
    """Return `expression` in words that do not change between runs."""
    return expression if isinstance(expression, str) else str(expression)


def input_type(expression: Expression, schema: pl.Schema, *, reader: str) -> pl.DataType:
    """Return the type of `expression` over rows of `schema`; `reader` names the aggregate in errors."""
    expr = as_expr(expression)
    if not _is_row_wise(expr):
        raise refuse("AGGREGATE_INPUT_NOT_A_ROW_VALUE", aggregate=reader, got=text(expression))
    [dtype] = result_schema(schema, [expr.alias("input")], step=reader).dtypes()
    return dtype


def _is_row_wise(expr: pl.Expr) -> bool:
    """Return False if `expr` certainly looks at other rows than its own.

    FRONT sees rows in chunks, so such an expression would give other values with every chunking.
    Polars cannot tell for user functions; those are taken on trust.
    """
    try:
        if not expr.meta.is_row_separable():
            return False
        if not expr.meta.is_length_preserving():
            return not expr.meta.root_names() and expr.meta.is_scalar()
    except PolarsError:
        return True
    return all(map(_is_row_wise, expr.meta.pop()))
