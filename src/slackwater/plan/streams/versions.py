"""Turning a stream of Debezium changes into a keyed stream of versions, for an as-of join."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import polars as pl

from slackwater.base.call_sites import remember
from slackwater.base.errors import refuse
from slackwater.formats.debezium.definition import DebeziumFormat
from slackwater.plan.row_functions import Decode, RowCondition, RowOp, Select, TakeTime, Validate, Where
from slackwater.plan.streams.keyed import KeyedStream
from slackwater.plan.streams.stream import Stream, Union

_NO_TRUNCATE: Final = Validate(
    rules=(RowCondition(name="no_truncate", predicate=pl.col("op") != "truncate", written="op <> 'truncate'"),)
)
_OF_ROWS: Final = Where(
    predicate=pl.col("op").is_in(["insert", "update", "delete", "snapshot"]),
    written="op IN ('insert', 'update', 'delete', 'snapshot')",
)
_SOURCE_TIME: Final = TakeTime(clock="event", expression=pl.col("source_time"), written="source_time")


def versions_of(stream: Stream) -> KeyedStream:
    """Return the versions of a table's rows, keyed, from a stream of its changes; or raise an error.

    1. Directly after decoding, so that these records need no event time: a truncate becomes a dead letter, because it
       does not name the versions it ends; tombstones, messages and schema changes are filtered out.
    2. The event time, if the stream has none yet.
    3. The columns of the row after the change or, for a delete, before it; and the kind of change.
    """
    place, form = next(((place, op.format) for place, op in enumerate(stream.ops) if isinstance(op, Decode)), (0, None))
    if not isinstance(form, DebeziumFormat):
        no_format = "a union" if isinstance(stream.origin, Union) else "a stream without decode"
        got = no_format if form is None else f"a stream of {form}"
        raise refuse("VERSIONS_FORMAT", stream=stream.name, got=got)
    changes: list[RowOp] = [_NO_TRUNCATE, _OF_ROWS]
    rest = stream.ops[place + 1 :]
    if not any(isinstance(op, TakeTime) for op in rest):
        changes.append(_SOURCE_TIME)
    operation = _free_name("op", form.rows)
    image = remember(Select(expressions=_image(form, operation), written=", ".join([*form.rows, operation])))
    ops = (*stream.ops[: place + 1], *changes, *rest, image)
    return remember(KeyedStream(stream=replace(stream, ops=ops), keys=form.key, operation=operation))


def _image(form: DebeziumFormat, operation: str) -> tuple[pl.Expr, ...]:
    """Return the columns of the changed row, and the kind of change."""
    is_delete = pl.col("op") == "delete"
    columns = [
        pl.when(is_delete)
        .then(pl.col("before").struct.field(name))
        .otherwise(pl.col("after").struct.field(name))
        .alias(name)
        for name in form.rows
    ]
    return (*columns, pl.col("op").alias(operation))


def _free_name(name: str, taken: pl.Schema) -> str:
    while name in taken:
        name += "_"
    return name
