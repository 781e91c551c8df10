"""The user's condition that pairs must satisfy in addition to their keys and times.

It is evaluated on pairs only. A row is tried alone, before it meets another, with those parts of the condition that
read its side and nothing else: they have the same value with every partner, so a row on which one of them fails can
match nothing.
"""

from __future__ import annotations

import json
from typing import Final

import polars as pl

from slackwater.base.expressions import FAILURES
from slackwater.base.truths import truths
from slackwater.operators.joins.columns import LEFT, RIGHT, SideName
from slackwater.operators.joins.matching import Pairs

_FIELD: Final = '{{"Function":{{"input":[{{"Column":"{side}"}}],"function":{{"StructExpr":{{"FieldByName":'
_TERNARY: Final = '{"Ternary":'


def judged(condition: pl.Expr, left: pl.DataFrame, right: pl.DataFrame, found: Pairs) -> tuple[pl.Series, int]:
    """Return for which pairs `condition` is true, and the number of pairs on which it fails, which do not match.

    The condition sees the rows as the structs `left` and `right`. Null counts as false.
    """
    pairs = pl.DataFrame([left.to_struct(LEFT).gather(found.ours), right.to_struct(RIGHT).gather(found.theirs)])
    return truths(pairs, condition)


def tried_alone(condition: pl.Expr, side: SideName, schema: pl.Schema) -> tuple[pl.Expr, ...]:
    """Return the largest parts of `condition` that read the rows of one side only, and that may fail on one of them.

    Not among them are the branches of a `CASE`, which are evaluated for some pairs only, and the user's functions,
    which may expect to be called for pairs only.
    """
    parts, found = [condition], []
    while parts:
        part = parts.pop()
        names, text = {*part.meta.root_names()}, part.meta.serialize(format="json")
        if names == {side}:
            is_field = text.startswith(_FIELD.format(side=side))
            found += [part] if not is_field and "python_udf" not in str(part) and _stands_alone(part, schema) else []
        elif side in names and not text.startswith(_TERNARY):
            parts += part.meta.pop()
    return tuple(found)


def columns_read(condition: pl.Expr, side: SideName, schema: pl.Schema) -> list[str]:
    """Return the columns of one side that `condition` reads: all of them, unless it reads single fields only."""
    parts, found = [condition], set[str]()
    while parts:
        part = parts.pop()
        text = part.meta.serialize(format="json")
        if text.startswith(_FIELD.format(side=side)):
            found.add(json.loads(text)["Function"]["function"]["StructExpr"]["FieldByName"])
        elif text == f'{{"Column":"{side}"}}' or '"Selector":' in text:
            return schema.names()
        elif side in part.meta.root_names():
            parts += part.meta.pop()
    return [name for name in schema if name in found] or schema.names()[:1]


def _stands_alone(part: pl.Expr, schema: pl.Schema) -> bool:
    """Return whether a part of an expression can be evaluated without the expression around it."""
    nothing = pl.DataFrame(schema={LEFT: pl.Struct(schema), RIGHT: pl.Struct(schema)})
    try:
        nothing.select(part.alias("part"))
    except FAILURES:
        return False
    return True


def tried(rows: pl.DataFrame, parts: tuple[pl.Expr, ...], side: SideName, schema: pl.Schema) -> pl.DataFrame:
    """Return `rows` of a side, or fail if one of `parts` cannot be evaluated on one of them."""
    seen = rows.select(pl.struct(schema.names()).alias(side))
    seen.select(part.alias(str(number)) for number, part in enumerate(parts))
    return rows
