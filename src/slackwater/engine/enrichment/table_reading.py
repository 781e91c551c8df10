"""Reading a table for a join: its key columns and the added ones, with one row per key."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.base.errors import fault
from slackwater.connectors.delta.table import read_delta
from slackwater.connectors.files.table import read_csv, read_parquet
from slackwater.connectors.postgres.table import read_query
from slackwater.connectors.sink import Unavailable
from slackwater.connectors.table import Table
from slackwater.plan.join_table import JoinTable

MOST_BYTES: Final = 512 << 20
"""The limit on a table's size, since every worker holds it in memory."""


def read_table(op: JoinTable, step: str) -> pl.DataFrame:
    """Return the table of a join, sorted by key; raises `Unavailable` if it cannot be read now.

    A row with a null in its key is left out, because nothing can join with it.
    """
    names = list(dict.fromkeys([*op.right, *op.added]))
    wanted = pl.Schema({name: op.table.schema[name] for name in names})
    try:
        frame = _read(op.table, wanted)
    except OSError as error:
        raise Unavailable(error.strerror or str(error)) from error
    keys = list(op.right)
    frame = frame.drop_nulls(keys).sort(keys).rechunk()
    twice = frame.select(keys).filter(pl.struct(keys).is_duplicated())
    if twice.height:
        key = ", ".join(f"{name} = {value!r:.60}" for name, value in twice.row(0, named=True).items())
        raise fault("TABLE_KEY_TWICE", step=step, table=op.table, key=key)
    if frame.estimated_size() > MOST_BYTES:
        size = f"{frame.height:,} rows, {frame.estimated_size('mb'):,.0f} MB"
        raise fault("TABLE_TOO_LARGE", step=step, table=op.table, size=size, most=f"{MOST_BYTES >> 20:,} MB")
    return frame


def _read(table: Table, schema: pl.Schema) -> pl.DataFrame:
    match table.kind:
        case "parquet":
            return read_parquet(table.place, schema)
        case "csv":
            return read_csv(table.place, schema)
        case "delta":
            # Read all columns: a file written before a column was added lacks it, and has nulls there.
            return read_delta(table.place, table.schema).select(schema.names())
        case "postgres":
            assert table.query is not None
            return read_query(table.place, table.query, table.password, schema)
