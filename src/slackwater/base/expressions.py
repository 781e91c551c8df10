"""Expressions as users write them: a column name, a SQL string, or a Polars expression."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import polars as pl
from polars.exceptions import DuplicateError, PanicException, PolarsError

from slackwater.base.errors import DefinitionError, listed, near_miss, refuse
from slackwater.base.row_wise import is_row_wise
from slackwater.base.sql_errors import sql_advice, sql_cause
from slackwater.base.sql_names import clock_in, with_known_names

Expression = str | pl.Expr
FAILURES: Final = (Exception, SystemExit, PanicException)
"""Errors that a user's function or expression may raise; the last is Polars' own and not an `Exception`."""
_SEVERAL: Final = "it is more than one expression"
_SQL: Final[set[str]] = set()
"""All texts that were parsed as SQL."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELD: Final = re.compile(r'col\("([^"]*)"\)\.struct\.field_by_name\(([^)]*)\)')
"""Matches a field of a column in Polars' text of an expression."""
_UNSPEAKABLE: Final = re.compile("[\x00\ud800-\udfff]")


class MissingField(NamedTuple):
    """A field that a struct column does not have, and the fields that it has."""

    of: str
    name: str
    known: list[str]


def check_column_name(name: str, *, place: str = "") -> None:
    """Reject a name that no expression could refer to or that cannot be encoded; `place` says where it was given."""
    is_pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    if not name or is_pattern or _UNSPEAKABLE.search(name):
        raise refuse("COLUMN_NAME", got=repr(name), place=place)


def as_expr(expression: Expression) -> pl.Expr:
    """Return `expression` as a Polars expression; a bare name is a column, other strings are SQL."""
    if isinstance(expression, pl.Expr):
        return expression
    if not isinstance(expression, str):
        raise refuse("EXPRESSION_KIND", got=repr(expression))
    if _NAME.fullmatch(expression) and expression.lower() not in ("true", "false", "null"):
        return pl.col(expression)
    if (clock := clock_in(expression)) is not None:
        raise refuse("EXPRESSION_CLOCK", got=expression, clock=clock)
    try:
        parsed = pl.sql_expr(with_known_names(expression))
    except (PolarsError, ValueError) as error:
        cause = sql_cause(expression, error)
        raise refuse("EXPRESSION_SQL", got=expression, cause=cause, advice=sql_advice(cause)) from error
    if not isinstance(parsed, pl.Expr):
        raise refuse("EXPRESSION_SQL", got=expression, cause=_SEVERAL, advice=sql_advice(_SEVERAL))
    _SQL.add(expression)
    return parsed


def as_written(expression: Expression) -> str:
    """Return `expression` as the user wrote it: SQL unchanged, a Polars expression as Polars prints it."""
    return expression if isinstance(expression, str) else str(expression)


def result_schema(frame_schema: pl.Schema, expressions: list[pl.Expr], *, step: str) -> pl.Schema:
    """Return the schema of `expressions` over rows of `frame_schema`, or raise a specific error.

    They are evaluated on an empty frame, so columns and types are checked before the first event.
    """
    check_clear(frame_schema, expressions, step=step)
    for expression in expressions:
        for name in expression.meta.root_names():
            if name and name not in frame_schema:  # the empty name is an element of a list
                raise unknown_column(name, frame_schema, step=step)
    for expression in expressions:
        if not is_row_wise(expression, step=step):
            raise refuse("EXPRESSION_NOT_A_ROW_VALUE", step=step, got=expression.meta.undo_aliases())
    empty = pl.DataFrame(schema=frame_schema)
    try:
        return empty.lazy().select(expressions).collect().schema
    except DuplicateError as error:
        raise refuse("EXPRESSION_NAME_TWICE", step=step, got=_shown(expressions)) from error
    except (PolarsError, TypeError, ValueError) as error:
        if (missing := missing_field(expressions, frame_schema)) is not None:
            raise _unknown_field(missing, step=step) from error
        cause = str(error).partition("\n")[0]  # the rest is the query plan
        raise refuse("EXPRESSION_TYPE", step=step, got=_shown(expressions), cause=cause) from error


def check_clear(frame_schema: pl.Schema, expressions: list[pl.Expr], *, step: str) -> None:
    """Reject a text that was parsed as SQL but is also the name of a column."""
    for name in _SQL & {*frame_schema}:
        meant = as_expr(name).meta.undo_aliases().meta
        if any(meant == expression.meta.undo_aliases().meta for expression in expressions):
            raise refuse("EXPRESSION_AMBIGUOUS", got=name, step=step)


def one_type(frame_schema: pl.Schema, expression: pl.Expr, *, step: str) -> pl.DataType:
    """Return the type of `expression` over rows of `frame_schema`; reject one with several result columns."""
    types = result_schema(frame_schema, [expression], step=step).dtypes()
    if len(types) != 1:
        raise refuse("EXPRESSION_NOT_ONE_COLUMN", step=step, got=expression, count=len(types))
    return types[0]


def _shown(expressions: list[pl.Expr]) -> str:
    return ", ".join(map(str, expressions))


def check_predicate(frame_schema: pl.Schema, expression: pl.Expr, *, step: str) -> None:
    """Reject `expression` unless it is one boolean per row."""
    dtype = one_type(frame_schema, expression, step=step)
    if dtype != pl.Boolean:
        raise refuse("PREDICATE_TYPE", step=step, got=expression, dtype=dtype)


def unknown_column(name: str, schema: pl.Schema, *, step: str) -> DefinitionError:
    """Return the error for a column that the rows of `step` do not have."""
    known = [column for column in schema.names() if not column.startswith("__")]
    return refuse("UNKNOWN_COLUMN", step=step, name=name, known=listed(known, near=name), hint=near_miss(name, known))


def missing_field(expressions: list[pl.Expr], schema: pl.Schema) -> MissingField | None:
    """Return the first field that the expressions read but the struct column does not have, or None."""
    read = [found for expression in expressions for found in _FIELD.findall(str(expression))]
    known = {of: [each.name for each in dtype.fields] for of, dtype in schema.items() if isinstance(dtype, pl.Struct)}
    found = (MissingField(of, name, known[of]) for of, name in read if of in known and name not in known[of])
    return next(found, None)


def _unknown_field(missing: MissingField, *, step: str) -> DefinitionError:
    known = [f"{missing.of}.{name}" for name in missing.known]
    got = f"{missing.of}.{missing.name}"
    return refuse("UNKNOWN_COLUMN", step=step, name=got, known=listed(known, near=got), hint=near_miss(got, known))
