"""Flattening columns of lists into one long frame and back, a whole column at a time.

Expressions that slice or sort lists inside `group_by` are avoided: they process one group at a time, and
Polars 2.1 reads out of bounds in some of them (`list.explode`, `sort_by` and `head` of structs).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

I64 = npt.NDArray[np.int64]


def joined(lists: pl.Expr) -> pl.Expr:
    """Return the aggregation that concatenates the lists of a group."""
    return lists.list.explode(keep_nulls=False, empty_as_null=False).implode()


def lengths(lists: pl.Series) -> I64:
    """Return the number of items in each list; 0 for a null list."""
    return lists.list.len().fill_null(0).to_numpy().astype(np.int64)


def items(lists: pl.Series) -> pl.Series:
    """Return the items of all lists in order."""
    return lists.list.explode(keep_nulls=False, empty_as_null=False)


def flat(frame: pl.DataFrame, columns: dict[str, str]) -> pl.DataFrame:
    """Return one row per item of parallel lists: its `row` in `frame`, its `place`, the `columns` renamed."""
    counts = lengths(frame[next(iter(columns))])
    found = {name: items(frame[column]) for column, name in columns.items()}
    return pl.DataFrame({"row": np.repeat(np.arange(len(counts)), counts), "place": _places(counts), **found})


def first_of_each(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return the first `most` items of each list; `rows` are items sorted by `row`."""
    row = rows["row"].to_numpy()
    _, counts = np.unique(row, return_counts=True)
    return rows.filter(pl.Series(_places(counts) < most))


def pick(frame: pl.DataFrame, columns: list[str], picked: pl.DataFrame) -> pl.DataFrame:
    """Return `frame` with parallel lists reduced to the items `picked` (by `row`, `place`), in that order."""
    places = lists_of(frame.height, picked, {"place": "place"})[0]
    return frame.with_columns(pl.col(column).list.gather(places) for column in columns)


def distinct(frame: pl.DataFrame, column: str, most: int | None = None) -> pl.DataFrame:
    """Return `frame` with the lists of `column` sorted, without duplicates, truncated to `most` items."""
    frame = frame.with_columns(pl.col(column).list.sort())
    rows = flat(frame, {column: "item"})
    item = pl.col("item")
    kept = rows.filter((pl.col("place") == 0) | item.ne_missing(item.shift()))
    kept = kept if most is None else first_of_each(kept, most)
    return frame if kept.height == rows.height else pick(frame, [column], kept)


def lists_of(height: int, rows: pl.DataFrame, columns: dict[str, str]) -> list[pl.Series]:
    """Return `height` lists for each of `columns`, renamed; `rows` are numbers sorted by `row`."""
    counts = np.bincount(rows["row"].to_numpy(), minlength=height)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    found = []
    for column, name in columns.items():
        values: pa.Array[Any] = rows[column].rechunk().to_arrow()
        lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)
        found.append(pl.Series(name, pl.from_arrow(lists)))
    return found


def _places(counts: I64) -> I64:
    """Return each item's position in its list."""
    starts: I64 = np.cumsum(counts) - counts
    placed: I64 = np.arange(int(counts.sum())) - np.repeat(starts, counts)
    return placed
