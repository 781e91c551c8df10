"""The columns that each row function returns, and the keys of its rows, checked when the pipeline is built."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from slackwater.base.errors import DefinitionError, cause_of, refuse
from slackwater.base.expressions import check_column_name, check_predicate, one_type, result_schema, unknown_column
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp
from slackwater.plan.row_functions import (
    Decode,
    Map,
    MapResultError,
    RowOp,
    Select,
    TakeTime,
    Validate,
    Where,
    WithColumns,
)

HIDDEN = pl.Schema({"__ts": pl.Int64(), "__part": pl.String(), "__off": pl.Int64(), "__ingested": pl.Int64()})
"""Columns that travel with every row: its event time, source partition, offset and ingestion time."""


def schema_after(  # noqa: C901, PLR0911, PLR0912  one answer per kind of row function
    op: RowOp, schema: pl.Schema, *, step: str, is_bytes: bool, has_time: bool
) -> pl.Schema:
    """Return the columns after `op`; raise an error if `op` does not fit its input."""
    if isinstance(op, Decode):
        if not is_bytes:
            raise refuse("DECODE_TYPED", step=step)
        for name in schema:  # the columns that the source adds to every record
            if name in op.format.schema:
                raise refuse("METADATA_COLUMN_TAKEN", step=step, column=name)
        return pl.Schema(dict(op.format.schema) | dict(schema))
    if isinstance(op, TakeTime):
        if has_time:
            raise refuse("EVENT_TIME_TWICE", stream=step.rsplit(".", 1)[0])
        if op.expression is None:
            return schema
    if is_bytes:
        raise refuse("DECODE_MISSING", stream=step.rsplit(".", 1)[0])
    match op:
        case TakeTime():
            _check_time(op, schema, step)
            return schema
        case Where(predicate=predicate):
            check_predicate(schema, predicate, step=step)
            return schema
        case Validate(rules=rules):
            for rule in rules:
                check_predicate(schema, rule.predicate, step=f"{step}, rule {rule.name}")
            return schema
        case WithColumns(expressions=expressions):
            return pl.Schema(dict(schema) | dict(_named(result_schema(schema, list(expressions), step=step), step)))
        case Select(expressions=expressions):
            return _named(result_schema(schema, list(expressions), step=step), step)
        case Map():
            return _named(_mapped(op, schema, step), step)
        case LookUp() | JoinTable():
            return _named(op.schema_after(schema, step), step)


def _check_time(op: TakeTime, schema: pl.Schema, step: str) -> None:
    assert op.expression is not None
    dtype = one_type(schema, op.expression, step=step)
    if not (dtype.is_integer() or dtype in (pl.Datetime, pl.Date)):
        raise refuse("EVENT_TIME_TYPE", step=step, got=op.expression, dtype=dtype)


def _named(schema: pl.Schema, step: str) -> pl.Schema:
    if not schema:
        raise refuse("STEP_WITHOUT_COLUMNS", step=step)
    for name, dtype in schema.items():
        check_column_name(name, place=f" in `{step}`")
        if name.startswith("__"):
            raise refuse("RESERVED_COLUMN", name=name, step=step)
        if dtype == pl.Object:
            raise refuse("OBJECT_COLUMN", name=name, step=step)
    return schema


def _mapped(op: Map, schema: pl.Schema, step: str) -> pl.Schema:
    try:
        made = op.apply(pl.DataFrame(schema=pl.Schema(dict(schema) | dict(HIDDEN))), op.schema)
    except DefinitionError:
        raise
    except MapResultError as error:
        raise refuse("MAP_RESULT", step=step, got=error.got) from error
    except (Exception, SystemExit) as error:  # the user's own function may raise anything
        if op.schema is not None:  # then it need not work on an empty frame
            return op.schema
        raise refuse("MAP_EMPTY", step=step, cause=cause_of(error)) from error
    if op.schema is not None:
        return op.schema
    found = pl.Schema({name: dtype for name, dtype in made.schema.items() if name not in HIDDEN})
    if not found:
        raise refuse("MAP_EMPTY", step=step, cause="a frame without columns")
    return found


def check_keys(step: str, keys: Iterable[str], schema: pl.Schema) -> None:
    """Reject keys that the rows do not have, and keys with nested types."""
    for key in keys:
        if key not in schema:
            raise unknown_column(key, schema, step=step)
        if schema[key].is_nested():
            raise refuse("KEY_TYPE", step=step, key=key, dtype=schema[key])
