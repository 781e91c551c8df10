"""The version of each table that a batch joins with, decided once when the batch begins.

The clock of a batch starts with the versions of the previous batch. A table that is due is read, its rows are
persisted, and the new version is added to the clock before the first task sees it. Whether it is due depends on the
batch's own processing time, so a replayed batch does not read it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import polars as pl

from slackwater.connectors.sink import Unavailable
from slackwater.engine.enrichment.snapshots import Snapshots
from slackwater.engine.enrichment.table_reading import read_table
from slackwater.eventtime.clock import Clock, TableVersion
from slackwater.plan.enrichments import tables
from slackwater.plan.join_table import JoinTable
from slackwater.plan.plan import Plan

Read = Callable[[JoinTable, str], pl.DataFrame]


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
        except Unavailable as trouble:
            raise TableUnavailable(step, op, str(trouble)) from trouble
        kept[step] = TableVersion(version=snapshots.keep(step, frame), read_at_ms=clock.now)
    return replace(clock, tables=kept)


def _is_due(known: TableVersion | None, op: JoinTable, now_ms: int) -> bool:
    if known is None:
        return True
    again = op.table.refresh_ms
    return again is not None and now_ms - known.read_at_ms >= again
