"""Whether the value of an expression depends on its own row only.

FRONT sees rows in chunks, so the value of an expression that reads other rows would depend on the chunking.

1. Polars serializes the expression as a JSON tree. An expression without JSON cannot be sent to Spark's workers either.
2. The kinds of nodes that work row by row are listed here.
3. For a function, Polars itself says whether it works row by row. It is asked with plain columns as the function's
   inputs, because it takes `n + n.sum()` for row by row, and cannot answer if an input's type depends on the rows'.
4. The user's own functions are trusted, but not their inputs.
5. Unknown nodes may read other rows and are rejected. So are nodes that another version of Polars spells differently,
   and text that is parsed as a time without a format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from io import StringIO
from typing import Any, Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from slackwater.base.errors import refuse

_TOKEN: Final = re.compile(r'[][{}]|"(?:[^"\\]|\\.)*"|[^][{}:,"\s]+')
_BYTES: Final = re.compile(r"\[[\d,]{31,}\]")
"""Matches the values of a series or a pickled function: of any size, and irrelevant here."""
_OF_VALUES: Final = frozenset(
    {
        "Boolean.IsIn", "Sql.IsIn", "Replace", "ReplaceStrict", "Business",
        "StringExpr.ContainsAny", "StringExpr.ReplaceMany", "StringExpr.ExtractMany", "StringExpr.FindMany",
    }
)  # fmt: skip
"""Functions that take a series of values that is the same for every row."""
_OF_USERS: Final = frozenset({"FoldHorizontal", "ReduceHorizontal", "CumFoldHorizontal", "CumReduceHorizontal"})
_NOT_ASKED: Final = frozenset(
    {
        "Sql.Binary", "Sql.IsIn", "Sql.Round", "Sql.ToFloat",  # become another function once the types are known
        "ArrayExpr.ToStruct", "StructExpr.SelectFields",  # become the fields that the type has
        "LowerBound", "UpperBound",  # become a literal of the type
        "StructExpr.MapFieldNames",  # has the user's function among its bytes
        "StringExpr.Strptime",  # with a format; without one it is rejected
    }
)  # fmt: skip
"""Functions that work row by row although Polars cannot tell."""


def is_row_wise(expr: pl.Expr, *, step: str) -> bool:
    """Return False if `expr` may read rows other than its own; reject one that cannot be sent to Spark's workers."""
    try:
        text = expr.meta.serialize(format="json")
    except PolarsError as error:
        cause = str(error).removeprefix("python: ")
        raise refuse("EXPRESSION_NOT_PORTABLE", got=expr, step=step, cause=cause) from error
    nodes = [_tree(_BYTES.sub("[]", text))]
    while nodes:
        node = nodes.pop()
        if _guesses_format(node):
            raise refuse("EXPRESSION_FORMAT", got=expr, step=step)
        inputs = _inputs(node)
        if inputs is None:
            return False
        nodes.extend(inputs)
    return True


def _tree(text: str) -> Any:  # noqa: ANN401  JSON
    """Parse a JSON text. `json.loads` fails on a thousand nested terms."""
    unfinished: list[list[Any]] = [[]]
    for piece in _TOKEN.findall(text):
        if piece in "[{":
            unfinished.append([])
        elif piece in "]}":
            values = unfinished.pop()
            unfinished[-1].append(values if piece == "]" else dict(zip(values[::2], values[1::2], strict=True)))
        else:
            unfinished[-1].append(json.loads(piece))
    return unfinished[0][0]


def _inputs(node: Any) -> Sequence[Any] | None:  # noqa: ANN401, PLR0911  JSON, and a table of its kinds
    """Return the inputs of a node that works row by row, else None."""
    match node:
        case "Element" | {"Column": _} | {"Selector": _} | {"Field": _} | {"Literal": {"Dyn": _} | {"Scalar": _}}:
            return []
        case {"Alias": [inner, _]} | {"KeepName": inner} | {"RenameAlias": {"expr": inner}} | {"Cast": {"expr": inner}}:
            return [inner]
        case {"BinaryExpr": {"left": left, "right": right}}:
            return [left, right]
        case {"Ternary": {"predicate": predicate, "truthy": truthy, "falsy": falsy}}:
            return [predicate, truthy, falsy]
        case {"Eval": {"expr": inner, "variant": "List" | "ListAgg" | "ArrayAgg" | {"Array": _}}}:
            return [inner]  # it evaluates the elements of one row
        case {"StructEval": {"expr": inner, "evaluation": list(fields)}}:
            return [inner, *fields]
        case {"AnonymousFunction": {"input": list(inputs), "options": {"flags": str(flags)}}}:
            return None if "RETURNS_SCALAR" in flags else inputs
        case {"Function": {"input": list(inputs), "function": function}}:
            return _function_inputs(function, inputs)
    return None


def _guesses_format(node: Any) -> bool:  # noqa: ANN401  JSON
    """Return whether a node parses times with a format that Polars infers from the first rows of a chunk."""
    match node:
        case {"Function": {"function": {"StringExpr": {"Strptime": [_, {"format": None}]}}}}:
            return True
    return False


def _function_inputs(function: Any, inputs: list[Any]) -> Sequence[Any] | None:  # noqa: ANN401  JSON
    """Return the inputs of a function that may differ from row to row, or None if it may read other rows."""
    names = _names(function)
    if names & _OF_USERS:
        options = next(iter(function.values()))
        return None if options.get("returns_scalar") else inputs
    if not (names & _NOT_ASKED or _says_row_wise(json.dumps(function), len(inputs))):
        return None
    return [each for each in inputs if not (names & _OF_VALUES and _is_series(each))]


def _names(function: Any) -> set[str]:  # noqa: ANN401  JSON
    """Return the names under which a function may be listed; it may have options or belong to a family."""
    match function:
        case str(name):
            return {name}
        case dict():
            ((outer, rest),) = function.items()
            inner = [rest] if isinstance(rest, str) else rest if isinstance(rest, dict) else []
            return {outer, *(f"{outer}.{each}" for each in inner)}
    return set()


def _is_series(node: Any) -> bool:  # noqa: ANN401  JSON
    match node:
        case {"Literal": {"Series": _}}:
            return True
    return False


@lru_cache(maxsize=1024)
def _says_row_wise(function: str, inputs: int) -> bool:
    """Return whether Polars says that a function of this many columns is row-wise; False if it cannot tell."""
    columns = [{"Column": f"input {number}"} for number in range(inputs)]
    node = json.dumps({"Function": {"input": columns, "function": json.loads(function)}})
    try:
        meta = pl.Expr.deserialize(StringIO(node), format="json").meta
        return meta.is_row_separable() and meta.is_length_preserving()
    except (PolarsError, PanicException):
        return False
