"""Streams for people: their columns, and where their rows come from."""

from __future__ import annotations

import polars as pl

from slackwater.base.errors import DefinitionError, listed
from slackwater.formats.schemas import spark_type
from slackwater.operators.ports import Port
from slackwater.plan.row_functions import Decode, TakeTime
from slackwater.plan.row_schemas import schema_after
from slackwater.plan.streams.stream import Branch, Step, Stream, branches


def columns_text(stream: Stream) -> str:
    """Return the columns of a stream in one line; of many, the first ones."""
    try:
        columns = columns_of(stream)
        texts = [f"{name} {spark_type(dtype, name)}" for name, dtype in columns.items()]
    except DefinitionError:
        return "columns unknown until the pipeline is built"
    return listed(texts) if texts else "not decoded"


def facts_of(stream: Stream) -> dict[str, str]:
    """Return the origin, the row functions and the columns of a stream."""
    origins = [_origin(branch) for branch in branches(stream)]
    functions = [op.label for op in stream.ops]
    facts = {"from": listed(origins), "row functions": listed(functions), "columns": columns_text(stream)}
    return facts if functions else {name: text for name, text in facts.items() if name != "row functions"}


def columns_of(stream: Stream) -> pl.Schema:
    """Return the columns of a stream, none if it is not decoded; raise the first error in its definition."""
    first, *_ = branches(stream)
    schema, is_bytes = _at_origin(first)
    has_time = isinstance(first.origin, Step)
    for op in first.ops:
        schema = schema_after(op, schema, step=f"{first.name}.{op.label}", is_bytes=is_bytes, has_time=has_time)
        is_bytes = is_bytes and not isinstance(op, Decode)
        has_time = has_time or isinstance(op, TakeTime)
    return pl.Schema() if is_bytes else schema


def _at_origin(branch: Branch) -> tuple[pl.Schema, bool]:
    """Return the columns at the origin of rows, and whether these are bytes that must be decoded."""
    if not isinstance(branch.origin, Step):
        beside = pl.Schema({column: dtype for column, (dtype, _) in branch.origin.metadata.items()})
        return branch.origin.schema or beside, branch.origin.schema is None
    step, ports = branch.origin, {}
    for port, keyed in step.inputs.items():
        ports[port] = Port(schema=columns_of(keyed.stream), keys=keyed.keys, streams=(keyed.stream.name,))
    spec = step.definition.resolve(step.name, ports)
    if not branch.side:
        return spec.result_types, False
    return spec.asked(frozenset({branch.side})).sides.get(branch.side, pl.Schema()), False


def _origin(branch: Branch) -> str:
    if not isinstance(branch.origin, Step):
        return str(branch.origin)
    inputs = [f"{keyed.stream.name} by {', '.join(keyed.keys)}" for keyed in branch.origin.inputs.values()]
    return f"step {branch.origin.name} of {' and '.join(inputs)}"
