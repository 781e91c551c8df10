"""Expressions as users write them: a column name, a SQL string, or a Polars expression."""

from __future__ import annotations

import re
from typing import Final

import polars as pl
from polars.exceptions import PolarsError

from slackwater.errors import DefinitionError, near_miss, refuse

Expression = str | pl.Expr
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def as_expr(expression: Expression) -> pl.Expr:
    """Return `expression` as a Polars expression; a bare name is a column, other strings are SQL."""
    if isinstance(expression, pl.Expr):
        return expression
    if not isinstance(expression, str):
        raise refuse("EXPRESSION_KIND", got=repr(expression))
    if _NAME.fullmatch(expression) and expression.lower() not in ("true", "false", "null"):
        return pl.col(expression)
    try:
        parsed = pl.sql_expr(expression)
    except (PolarsError, ValueError) as error:
        raise refuse("EXPRESSION_SQL", got=expression, cause=error) from error
    if not isinstance(parsed, pl.Expr):
        raise refuse("EXPRESSION_SQL", got=expression, cause="it is more than one expression")
    return parsed


def as_written(expression: Expression) -> str:
    """Return `expression` as the user wrote it: SQL as it is, of a Polars expression what Polars says."""
    return expression if isinstance(expression, str) else str(expression)


def result_schema(frame_schema: pl.Schema, expressions: list[pl.Expr], *, step: str) -> pl.Schema:
    """Return the schema that `expressions` give over rows of `frame_schema`, or refuse with what is known.

    Runs them over an empty frame, so columns and types are checked before the first event.
    """
    for expression in expressions:
        for name in expression.meta.root_names():
            if name not in frame_schema:
                raise unknown_column(name, frame_schema, step=step)
    empty = pl.DataFrame(schema=frame_schema)
    try:
        return empty.lazy().select(expressions).collect().schema
    except (PolarsError, TypeError, ValueError) as error:
        raise refuse("EXPRESSION_TYPE", step=step, got=expressions, cause=error) from error


def check_predicate(frame_schema: pl.Schema, expression: pl.Expr, *, step: str) -> None:
    """Refuse `expression` unless it gives one truth value per row."""
    [(_, dtype)] = result_schema(frame_schema, [expression.alias("predicate")], step=step).items()
    if dtype != pl.Boolean:
        raise refuse("PREDICATE_TYPE", step=step, got=expression, dtype=dtype)


def unknown_column(name: str, schema: pl.Schema, *, step: str) -> DefinitionError:
    """Return the error for a column that the rows of `step` do not have."""
    known = [column for column in schema.names() if not column.startswith("__")]
    return refuse("UNKNOWN_COLUMN", step=step, name=name, known=", ".join(known), hint=near_miss(name, known))
