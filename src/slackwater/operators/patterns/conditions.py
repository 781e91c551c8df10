"""The conditions of steps, validated and split into a part on the row alone and a part that ties it to other rows.

The first part is evaluated once for each row, in FRONT. The second needs the rows that the match has taken so far,
so it is evaluated in KEYED, for pairs of a partial match and a row that passed the first part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import polars as pl
from polars.exceptions import PolarsError

from slackwater.base.errors import listed, near_miss, refuse
from slackwater.base.expressions import check_predicate, unknown_column
from slackwater.operators.patterns.steps import PatternStep


@dataclass(frozen=True, kw_only=True)
class Condition:
    """The condition of a step, in two parts that must both hold; a part that is None always holds."""

    own: pl.Expr | None
    tied: pl.Expr | None = None
    reads: tuple[str, ...] = ()
    """The columns of the row itself that `tied` reads."""
    refers: tuple[int, ...] = ()
    """The steps whose rows `tied` reads, as struct columns named after the steps."""


def conditions(steps: Sequence[PatternStep], schema: pl.Schema, *, step: str) -> tuple[Condition, ...]:
    """Return the conditions of a pattern's steps over rows of `schema`, or reject the first invalid one."""
    return tuple(_condition(steps, number, schema, step) for number in range(len(steps)))


def referred_fields(found: Iterable[Condition], steps: Sequence[PatternStep], schema: pl.Schema) -> tuple[str, ...]:
    """Return the columns that conditions read from the rows of other steps."""
    tied = [condition.tied for condition in found if condition.tied is not None]
    return tuple(name for name in schema if any(_fails_without(name, each, steps, schema) for each in tied))


def _condition(steps: Sequence[PatternStep], number: int, schema: pl.Schema, step: str) -> Condition:
    this, place = steps[number], f"{step}, pattern step {steps[number].name}"
    known = {each.name: at for at, each in enumerate(steps[: number + 1]) if each.name not in schema}
    _check_references(steps, number, schema, place)
    for root in this.condition.meta.root_names():
        if root and root not in schema and root not in known:
            raise unknown_column(root, schema, step=place)
    check_predicate(pl.Schema(dict(schema) | {name: pl.Struct(schema) for name in known}), this.condition, step=place)
    parts = list(_conjuncts(_without_alias(this.condition)))
    for part in parts:
        if not part.meta.root_names() and pl.select(part).item() is not True:
            raise refuse("PATTERN_NEVER", step=place, got=this.written)
    tied = [part for part in parts if known.keys() & {*part.meta.root_names()}]
    own = [part for part in parts if not known.keys() & {*part.meta.root_names()}]
    roots = {root for part in tied for root in part.meta.root_names()}
    return Condition(
        own=reduce(and_, own) if own else None,
        tied=reduce(and_, tied) if tied else None,
        reads=tuple(name for name in schema if name in roots),
        refers=tuple(at for name, at in known.items() if name in roots),
    )


def _check_references(steps: Sequence[PatternStep], number: int, schema: pl.Schema, place: str) -> None:
    """Reject `name.column` if `name` is not a step that has already taken its rows."""
    names = [each.name for each in steps]
    text = str(steps[number].condition)
    for root in steps[number].condition.meta.root_names():
        is_field = f'col("{root}").struct.field' in text
        if root in schema:
            if is_field and root in names and not isinstance(schema[root], pl.Struct):
                raise refuse("PATTERN_REFERENCE_AMBIGUOUS", step=place, name=root)
        elif root in names[number + 1 :]:
            raise refuse("PATTERN_REFERENCE_LATER", step=place, name=root)
        elif root in names and not is_field:
            raise refuse("PATTERN_REFERENCE_WHOLE", step=place, name=root)
        elif is_field and root not in names:
            known = [*names[: number + 1]]
            raise refuse(
                "PATTERN_REFERENCE_UNKNOWN",
                step=place,
                name=root,
                known=listed(known, near=root),
                hint=near_miss(root, known),
            )


def _without_alias(expression: pl.Expr) -> pl.Expr:
    """Return an expression without its own alias; `undo_aliases` would also rename the fields of structs in it."""
    inputs = expression.meta.pop()
    if len(inputs) == 1 and str(expression).startswith(f'{inputs[0]}.alias("'):
        return _without_alias(inputs[0])
    return expression


def _conjuncts(expression: pl.Expr) -> Iterable[pl.Expr]:
    """Yield the parts of an expression that must all be true for it to be true."""
    inputs = expression.meta.pop()[::-1]
    if len(inputs) == 2 and str(expression) == f"[({inputs[0]}) & ({inputs[1]})]":  # noqa: PLR2004  left and right
        for part in inputs:
            yield from _conjuncts(part)
    else:
        yield expression


def _fails_without(name: str, tied: pl.Expr, steps: Sequence[PatternStep], schema: pl.Schema) -> bool:
    """Return whether an expression reads the column `name` of a step's row, by testing whether it fails without it."""
    fewer = pl.Struct({other: dtype for other, dtype in schema.items() if other != name})
    known = dict(schema) | {each.name: fewer for each in steps if each.name not in schema}
    try:
        pl.DataFrame(schema=known).select(tied)
    except PolarsError:
        return True
    return False
