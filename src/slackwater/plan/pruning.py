"""Column pruning: columns that the pipeline does not read are not decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import polars as pl

from slackwater.formats.undecoded import Undecoded
from slackwater.operators.step import KeyedStep
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp
from slackwater.plan.plan import RowNode
from slackwater.plan.row_functions import Decode, Map, RowOp, Select, TakeTime, Validate, Where, WithColumns


def without_unread(node: RowNode, specs: Mapping[str, KeyedStep]) -> RowNode:
    """Return a source's tree of row functions with every decoding narrowed to the columns that are read after it.

    A column is left out only if no function, key or aggregate reads or replaces it, and no output of rows contains it.
    The late output can therefore take its value from the record.
    """
    return replace(node, children=tuple(_narrowed(child, specs) for child in node.children))


def _narrowed(node: RowNode, specs: Mapping[str, KeyedStep]) -> RowNode:
    if not isinstance(node.op, Decode):
        return node
    form, read = node.op.format, _read_below(node, specs)
    names = tuple(name for name in form.schema if name in form.optional and name not in read)
    return _with_undecoded(node, Undecoded(format=form, names=names)) if names else node


def _with_undecoded(node: RowNode, undecoded: Undecoded) -> RowNode:
    children = tuple(_with_undecoded(child, undecoded) for child in node.children)
    return replace(node, children=children, undecoded=undecoded)


def _read_below(node: RowNode, specs: Mapping[str, KeyedStep]) -> set[str]:
    """Return the columns that are read, replaced or output anywhere below `node`."""
    read = set(node.schema) if node.outputs else set[str]()
    for step, port in node.feeds:
        read |= _read_by_step(specs[step], port)
    for child in node.children:
        assert child.op is not None
        read |= _read_by(child.op, node.schema) | _read_below(child, specs)
    return read


def _read_by_step(step: KeyedStep, port: str) -> set[str]:
    taken = step.ports[port]
    return {*taken.keys, *_roots(step.reads(port), taken.schema)}


def _read_by(op: RowOp, schema: pl.Schema) -> set[str]:  # noqa: PLR0911  one answer per kind of row function
    match op:
        case TakeTime(expression=expression):
            return _roots([] if expression is None else [expression], schema)
        case Where(predicate=predicate):
            return _roots([predicate], schema)
        case WithColumns(expressions=expressions) | Select(expressions=expressions):
            made = {expression.meta.output_name(raise_if_undetermined=False) for expression in expressions}
            return _roots(expressions, schema) | {name for name in made if name is not None}
        case Validate(rules=rules):
            return _roots([rule.predicate for rule in rules], schema)
        case LookUp(key=key):
            return {key}
        case JoinTable(left=keys):
            return set(keys)
        case Map() | Decode():
            return set(schema)


def _roots(expressions: Iterable[pl.Expr], schema: pl.Schema) -> set[str]:
    """Return the columns that expressions read; all columns if an expression selects several at once."""
    read: set[str] = set()
    for expression in expressions:
        read |= set(schema) if expression.meta.has_multiple_outputs() else set(expression.meta.root_names())
    return read
