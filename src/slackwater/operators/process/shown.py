"""The state of a process in readable form: values by their declared names, timers, and waiting events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from slackwater.operators.process.chunks import APART, chunks_of
from slackwater.operators.process.migration import conformed
from slackwater.operators.process.state import State
from slackwater.operators.process.state_of_several import StateOfSeveral
from slackwater.operators.process.timers_of_a_key import KINDS
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import free_names, moment

TIMERS: Final = "__timers"


def shown_cells(
    rows: pl.DataFrame, keys: tuple[str, ...], states: Mapping[str, State], row_schema: pl.Schema
) -> pl.DataFrame:
    """Return a row for each key with state, and one for each event that waits for the watermark.

    `oldest_write` is the event time of the oldest write that is still stored, among states with the event clock.
    """
    names = free_names({name: name for name in states}, keys)
    cells = [_cell(name, state).alias(names[name]) for name, state in states.items()]
    by_event = [_first_write(name, state) for name, state in states.items() if state.clock == "event"]
    oldest = pl.min_horizontal(by_event) if by_event else pl.lit(None, dtype=pl.Int64())
    facts = {"timers": _timers(), "oldest_write": moment(oldest)}
    if "__ts" in rows.columns:
        # One struct column, because columns of an event may have the names of states.
        event = pl.when(pl.col("__ts").is_not_null()).then(pl.struct(row_schema.names()))
        facts |= {"event_time": moment(pl.col("__ts")), "waiting_event": event}
    free = free_names({name: name for name in facts}, (*keys, *names.values()))
    return rows.select(*keys, *cells, *(expr.alias(free[name]) for name, expr in facts.items()))


def with_chunks(rows: pl.DataFrame, state: StepState, states: Mapping[str, State]) -> pl.DataFrame:
    """Return `rows` with the entries that are stored in chunks, in the columns of those that are not."""
    large = rows.with_row_index("__row").filter(pl.col(APART).is_not_null())
    for place, directory in large.select("__row", APART).rows():
        for of, chunks in chunks_of(directory).items():
            found = pl.concat(state.read_chunk(chunk.seq, size=chunk.bytes, crc=chunk.crc) for chunk in chunks)
            for column, held in _lists(of, found, states):
                own = rows[column].to_list()[place] or []
                whole = pl.Series(column, [[*own, *held]], dtype=rows.schema[column])
                rows = pl.concat([rows[:place], rows[place : place + 1].with_columns(whole), rows[place + 1 :]])
    return rows


def _lists(of: str, found: pl.DataFrame, states: Mapping[str, State]) -> list[tuple[str, list[Any]]]:
    """Return the columns of a state row that the entries of a cell's chunks belong to, with their values."""
    if of in KINDS:
        is_processing = pl.lit(KINDS[of][0]).alias("is_processing")
        timers = found.sort("at").select("at", "name", is_processing, "since")
        return [(TIMERS, timers.to_dicts())]
    state = states.get(of)
    if not isinstance(state, StateOfSeveral):
        return []
    held = conformed(found, pl.Schema(state.apart_types)).sort("seq")
    parts = {"map": {"keys": "key", "values": "value"}, "set": {"values": "key"}}.get(state.kind, {"values": "value"})
    return [(f"__{of}.{part}", held[column].to_list()) for part, column in {**parts, "at": "at"}.items()]


def _cell(name: str, state: State) -> pl.Expr:
    if state.kind != "map":
        return pl.col(f"__{name}.{'value' if state.kind == 'value' else 'values'}")
    parts = [pl.col(f"__{name}.keys").alias("key"), pl.col(f"__{name}.values").alias("value")]
    return pl.struct(parts).map_batches(_entries, return_dtype=_entry_type(state))


def _entry_type(state: State) -> pl.DataType:
    return pl.List(pl.Struct({"key": state.types["key"], "value": state.types["value"]}))


def _entries(cells: pl.Series) -> pl.Series:
    """Return maps, whose keys and values are stored as two lists, as lists of entries."""
    frame = cells.struct.unnest().with_row_index("row")
    pairs = frame.explode("key", "value").filter(pl.col("key").is_not_null())
    entries = pairs.group_by("row", maintain_order=True).agg(pl.struct("key", "value").alias("entries"))
    return frame.select("row").join(entries, on="row", how="left", maintain_order="left")["entries"]


def _first_write(name: str, state: State) -> pl.Expr:
    at = pl.col(f"__{name}.at")
    return at if state.kind == "value" else at.list.min()


def _timers() -> pl.Expr:
    timer = pl.element().struct
    clock = pl.when(timer.field("is_processing")).then(pl.lit("processing")).otherwise(pl.lit("event"))
    shown = pl.struct(moment(timer.field("at")).alias("at"), timer.field("name"), clock.alias("clock"))
    return pl.col(TIMERS).list.eval(shown)
