"""The input of an aggregate: one expression over the columns of a row, evaluated before rows are grouped."""

from __future__ import annotations

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.expressions import Expression, as_expr, as_written, one_type
from slackwater.base.row_wise import is_row_wise

__all__ = ["Expression", "as_expr", "input_type"]


def input_type(expression: Expression, schema: pl.Schema, *, reader: str) -> pl.DataType:
    """Return the type of `expression` over rows of `schema`; `reader` names the aggregate in errors."""
    expr = as_expr(expression)
    if not is_row_wise(expr, step=reader):
        raise refuse("AGGREGATE_INPUT_NOT_A_ROW_VALUE", aggregate=reader, got=as_written(expression))
    return one_type(schema, expr, step=reader)
