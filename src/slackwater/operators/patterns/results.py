"""The results of a pattern: one row per match, with the columns of its rows prefixed by the names of the steps."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from slackwater.base.times import TIMESTAMP, to_timestamp
from slackwater.operators.patterns.course import Course
from slackwater.operators.patterns.definitions import Pattern
from slackwater.operators.patterns.matcher import Matches
from slackwater.operators.patterns.steps import PatternStep

TIMES: Final = ("first_time", "last_time", "event_time")


def shown_steps(pattern: Pattern) -> list[tuple[int, PatternStep]]:
    """Return the steps that results contain, by number; for an absence, only the row that nothing followed."""
    return list(enumerate(pattern.steps))[: 1 if pattern.is_absence else None]


def result_columns(pattern: Pattern, schema: pl.Schema, keys: tuple[str, ...]) -> list[tuple[str, pl.DataType]]:
    """Return the columns of a result; the caller rejects duplicate names."""
    found: list[tuple[str, pl.DataType]] = [(key, schema[key]) for key in keys]
    for _, step in shown_steps(pattern):
        found += [
            (f"{step.name}_{name}", pl.List(dtype) if step.is_repeated else dtype)
            for name, dtype in schema.items()
            if name not in keys
        ]
        found += [(f"{step.name}_count", pl.Int64())] if step.is_repeated else []
    return found + [(name, TIMESTAMP) for name in TIMES]


def result_rows(course: Course, types: pl.Schema, rows: pl.DataFrame, found: Matches) -> pl.DataFrame:
    """Return the results for matches in `rows`, ordered by key and first row."""
    pattern, keys = course.pattern, course.keys
    columns = rows.select(keys)[found.first].get_columns()
    for number, step in shown_steps(pattern):
        mine = found.step == number
        names = [name for name in rows.columns if not name.startswith("__") and name not in keys]
        made = _lists if step.is_repeated else _values
        columns += made(rows.select(names), step, found.number[mine], found.row[mine], len(found.first))
    times = rows["__ts"].to_numpy()
    first, last = times[found.first], times[found.last]
    moments = (first, last, first + pattern.within_ms if pattern.is_absence else last)
    places = [
        rows[place][row].alias(f"__{which}{place.removeprefix('_')}")
        for which, row in (("last", found.last), ("first", found.first))
        for place in ("__part", "__off")
    ]
    frame = pl.DataFrame(columns).hstack([pl.Series(name, each) for name, each in zip(TIMES, moments, strict=True)])
    frame = frame.hstack(places).with_columns(to_timestamp(pl.col(name)) for name in TIMES)
    return frame.select(*types.names(), *(place.name for place in places))


def _values(rows: pl.DataFrame, step: PatternStep, number: np.ndarray, row: np.ndarray, size: int) -> list[pl.Series]:
    """Return the columns of a step that has at most one row in each match."""
    taken = pl.Series([None], dtype=pl.Int64).new_from_index(0, size).scatter(number, row)
    return [rows[name].gather(taken).alias(f"{step.name}_{name}") for name in rows.columns]


def _lists(rows: pl.DataFrame, step: PatternStep, number: np.ndarray, row: np.ndarray, size: int) -> list[pl.Series]:
    """Return the columns of a step that may have several rows in a match, as lists."""
    taken = rows[row].with_columns(pl.Series("__number", number))
    lists = taken.group_by("__number", maintain_order=True).agg(pl.all(), pl.len().cast(pl.Int64).alias("__count"))
    every = pl.DataFrame({"__number": np.arange(size)}).join(lists, on="__number", how="left", maintain_order="left")
    empty = [pl.col(name).fill_null(pl.lit([], pl.List(rows.schema[name]))) for name in rows.columns]
    every = every.with_columns(*empty, pl.col("__count").fill_null(0))
    return [every[name].alias(f"{step.name}_{name}") for name in rows.columns] + [
        every["__count"].alias(f"{step.name}_count")
    ]
