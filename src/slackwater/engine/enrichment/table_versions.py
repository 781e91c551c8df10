"""The version of each table that a batch joins with, decided once when the batch begins.

The clock of a batch starts with the versions of the previous batch. A table that is due is read, its rows are
persisted, and the new version is added to the clock before the first task sees it. Whether it is due depends on the
batch's own processing time, so a replayed batch does not read it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import polars as pl

from slackwater.base.errors import fault
from slackwater.connectors.delta.table import read_delta
from slackwater.connectors.files.table import read_csv, read_parquet
from slackwater.connectors.postgres.table import read_query
from slackwater.connectors.sink import Unavailable
from slackwater.connectors.table import Table
from slackwater.engine.enrichment.snapshots import Snapshots
from slackwater.eventtime.clock import Clock, TableVersion
from slackwater.plan.enrichments import tables
from slackwater.plan.join_table import JoinTable
from slackwater.plan.plan import Plan

MOST_BYTES: Final = 512 << 20
"""The limit on a table's size, since every worker holds it in memory."""
Read = Callable[[JoinTable, str], pl.DataFrame]


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


class TableUnavailable(Exception):  # noqa: N818  a condition of the table, not the error that the job fails with
    """Raised when a table cannot be read at the moment."""

    def __init__(self, step: str, op: JoinTable, why: str) -> None:
        super().__init__(why)
        self.facts = {"step": step, "table": op.table, "why": why}


def due_tables(plan: Plan, clock: Clock, *, all_of_them: bool = False) -> dict[str, JoinTable]:
    """Return the tables to be read for the batch that begins with `clock`."""
    return {
        step: op for step, op in tables(plan).items() if all_of_them or _is_due(clock.tables.get(step), op, clock.now)
    }


def with_tables(
    plan: Plan, clock: Clock, snapshots: Snapshots, due: Mapping[str, JoinTable], read: Read = read_table
) -> Clock:
    """Return `clock` with new versions of the tables that are due; raise `TableUnavailable` if one cannot be read."""
    kept = {step: clock.tables[step] for step in tables(plan) if step in clock.tables}
    for step, op in due.items():
        try:
            frame = read(op, step)
        except Unavailable as failure:
            raise TableUnavailable(step, op, str(failure)) from failure
        kept[step] = TableVersion(version=snapshots.keep(step, frame), read_at_ms=clock.now)
    return replace(clock, tables=kept)


def _is_due(known: TableVersion | None, op: JoinTable, now_ms: int) -> bool:
    if known is None:
        return True
    again = op.table.refresh_ms
    return again is not None and now_ms - known.read_at_ms >= again
