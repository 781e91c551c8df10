"""Expressions as users write them: a column name, a SQL string, or a Polars expression."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import polars as pl
from polars.exceptions import DuplicateError, PanicException, PolarsError

from slackwater.errors import DefinitionError, near_miss, refuse

Expression = str | pl.Expr
FAILURES: Final = (Exception, SystemExit, PanicException)
"""What a user's function or expression may raise; the last is Polars' own, and no `Exception`."""
_SQL: Final[set[str]] = set()
"""Texts that were read as SQL."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSPEAKABLE: Final = re.compile("[\x00\ud800-\udfff]")
_OF_ELEMENTS: Final = re.compile(r"\.(list|arr)\.(eval|agg)\(")
"""Here and below: an operation, as Polars shows it after its first input. These look at one row's list."""
_OF_VALUES: Final = re.compile(
    r"\.(is_in|sql_is_in|replace|replace_strict|str\.\w+_(any|many)|add_business_days|business_day_count|is_business_day)\("
)
"""Operations that take a series of values, the same for every row."""
_ON_TRUST: Final = re.compile(r"\.(fold|reduce|str\.strptime|struct\.field)\(")
"""Operations of one row that Polars does not take for such, or cannot judge without the rows' types."""
_OF_OTHER_ROWS: Final = re.compile(
    r"\.((cum|ewm|rolling|arg|bitwise|fill_null_with)_\w+|rolling|over|shift|diff|pct_change|rank|interpolate(_by)?"
    r"|sum|product|mean|median|min|max|min_by|max_by|std|var|quantile|mode|skew|kurtosis|entropy|count|len|null_count"
    r"|n_unique|approx_n_unique|has_nulls|nan_min|nan_max|first|last|first_non_null|last_non_null|item|any|all|any_ignore_nulls|all_ignore_nulls|implode|explode|append|upcast"
    r"|sort|sort_by|reverse|shuffle|sample|head|tail|slice|limit|get|gather|gather_every|filter|drop_nulls|drop_nans"
    r"|unique|unique_counts|value_counts|top_k|top_k_by|bottom_k|bottom_k_by|hist|qcut|bin_quantiles|bin_ranks|reshape|rle|rle_id|index_of"
    r"|search_sorted|extend_constant|is_duplicated|is_unique|is_first_distinct|is_last_distinct|peak_min|peak_max"
    r"|str\.concat_vertical)\("
)
"""Operations that look at other rows, by name: Polars cannot judge them over what it must see types to judge."""


def check_column_name(name: str, *, place: str = "") -> None:
    """Refuse a name that no expression could mean, or that cannot leave Python; `place` says where it was given."""
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
    try:
        parsed = pl.sql_expr(expression)
    except (PolarsError, ValueError) as error:
        raise refuse("EXPRESSION_SQL", got=expression, cause=error) from error
    if not isinstance(parsed, pl.Expr):
        raise refuse("EXPRESSION_SQL", got=expression, cause="it is more than one expression")
    _SQL.add(expression)
    return parsed


def as_written(expression: Expression) -> str:
    """Return `expression` as the user wrote it: SQL as it is, of a Polars expression what Polars says."""
    return expression if isinstance(expression, str) else str(expression)


def is_row_wise(expr: pl.Expr) -> bool:
    """Return False if `expr` certainly looks at other rows than its own.

    FRONT sees rows in chunks, so such an expression would give other values with every chunking.
    Polars cannot tell for user functions; those are taken on trust, but not what they are given.
    """
    try:
        return _judged(expr).is_row_wise
    except RecursionError:  # a thousand terms in one another
        return _may_be_row_wise(expr)


class _Judged(NamedTuple):
    is_row_wise: bool
    has_trusted: bool = False
    """Whether a part of it is on trust, so that Polars cannot be asked about the whole."""


def _judged(expr: pl.Expr) -> _Judged:
    inputs = expr.meta.pop()  # the first one last
    if not inputs:
        return _Judged(expr.meta.is_scalar() if expr.meta.is_literal() else str(expr) != "len()")
    operation = str(expr).removeprefix(str(inputs[-1]))
    if _OF_OTHER_ROWS.match(operation):
        return _Judged(is_row_wise=False)
    if _OF_ELEMENTS.match(operation):
        inputs = inputs[-1:]
    elif _OF_VALUES.match(operation):
        inputs = [each for each in inputs if not each.meta.is_literal()]
    parts = list(map(_judged, inputs))
    if not all(part.is_row_wise for part in parts):
        return _Judged(is_row_wise=False)
    if _ON_TRUST.match(operation) or any(part.has_trusted for part in parts):
        return _Judged(is_row_wise=True, has_trusted=True)
    return _Judged(_may_be_row_wise(expr))


def _may_be_row_wise(expr: pl.Expr) -> bool:
    """Return what Polars says of `expr` as a whole; True if it cannot tell."""
    try:
        if not expr.meta.is_row_separable():
            return False
        return expr.meta.is_length_preserving() or (not expr.meta.root_names() and expr.meta.is_scalar())
    except (PolarsError, PanicException):
        return True


def result_schema(frame_schema: pl.Schema, expressions: list[pl.Expr], *, step: str) -> pl.Schema:
    """Return the schema that `expressions` give over rows of `frame_schema`, or refuse with what is known.

    Runs them over an empty frame, so columns and types are checked before the first event.
    """
    check_clear(frame_schema, expressions, step=step)
    for expression in expressions:
        for name in expression.meta.root_names():
            if name and name not in frame_schema:  # the empty name is an element of a list
                raise unknown_column(name, frame_schema, step=step)
    for expression in expressions:
        if not is_row_wise(expression):
            raise refuse("EXPRESSION_NOT_A_ROW_VALUE", step=step, got=expression.meta.undo_aliases())
    empty = pl.DataFrame(schema=frame_schema)
    try:
        return empty.lazy().select(expressions).collect().schema
    except DuplicateError as error:
        raise refuse("EXPRESSION_NAME_TWICE", step=step, got=_shown(expressions)) from error
    except (PolarsError, TypeError, ValueError) as error:
        raise refuse("EXPRESSION_TYPE", step=step, got=_shown(expressions), cause=error) from error


def check_clear(frame_schema: pl.Schema, expressions: list[pl.Expr], *, step: str) -> None:
    """Refuse a text that was read as SQL, and is the name of a column as well."""
    for name in _SQL & {*frame_schema}:
        meant = as_expr(name).meta.undo_aliases().meta
        if any(meant == expression.meta.undo_aliases().meta for expression in expressions):
            raise refuse("EXPRESSION_AMBIGUOUS", got=name, step=step)


def one_type(frame_schema: pl.Schema, expression: pl.Expr, *, step: str) -> pl.DataType:
    """Return the type of `expression` over rows of `frame_schema`; refuse one that gives several columns."""
    types = result_schema(frame_schema, [expression], step=step).dtypes()
    if len(types) != 1:
        raise refuse("EXPRESSION_NOT_ONE_COLUMN", step=step, got=expression, count=len(types))
    return types[0]


def _shown(expressions: list[pl.Expr]) -> str:
    return ", ".join(map(str, expressions))


def check_predicate(frame_schema: pl.Schema, expression: pl.Expr, *, step: str) -> None:
    """Refuse `expression` unless it gives one truth value per row."""
    dtype = one_type(frame_schema, expression, step=step)
    if dtype != pl.Boolean:
        raise refuse("PREDICATE_TYPE", step=step, got=expression, dtype=dtype)


def unknown_column(name: str, schema: pl.Schema, *, step: str) -> DefinitionError:
    """Return the error for a column that the rows of `step` do not have."""
    known = [column for column in schema.names() if not column.startswith("__")]
    return refuse("UNKNOWN_COLUMN", step=step, name=name, known=", ".join(known), hint=near_miss(name, known))
