"""State in readable form: rows read without removing them, without the columns that only the engine needs."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from slackwater.base.keys import join_on_keys
from slackwater.base.times import MAX_MS, to_timestamp
from slackwater.operators.state.buckets import bucket_of
from slackwater.operators.state.pieces import INBOX, StateLayout, StepState

_HIDDEN = "__"


def held_rows(
    state: StepState, keys: tuple[str, ...], key: pl.DataFrame | None = None, layout: StateLayout | None = None
) -> pl.DataFrame:
    """Return the rows of all keys, or of the one in `key`, in the order they were stored, without removing them.

    For one key of state in buckets, only its bucket and the inbox are read.
    """
    pieces = state.pieces
    if key is not None:
        near = {INBOX, int(bucket_of(key, keys, state.buckets)[0])}
        pieces = [piece for piece in pieces if piece.bucket in near]
    frames = [frame if layout is None else layout.conform(frame) for frame in state.read(pieces)]
    frames = [of_key(frame, keys, key) for frame in frames]
    if not frames:
        return pl.DataFrame(schema=None if layout is None else layout.state_types)
    return pl.concat(frames, how="diagonal" if layout is None else "vertical")


def of_key(rows: pl.DataFrame, keys: tuple[str, ...], key: pl.DataFrame | None) -> pl.DataFrame:
    """Return the rows that have the key in the only row of `key`, or all rows if `key` is None."""
    if key is None:
        return rows
    return join_on_keys(rows, key.select(keys), keys, how="semi")


def readable(rows: pl.DataFrame, keys: tuple[str, ...], /, **added: pl.Expr) -> pl.DataFrame:
    """Return `rows` without hidden columns: the key, `added` columns (computed from hidden ones), the user's columns.

    A user's column takes precedence over an added one of the same name.
    """
    own = [name for name in rows.columns if not name.startswith(_HIDDEN) and name not in keys]
    made = [expr.alias(name) for name, expr in added.items() if name not in own and name not in keys]
    return rows.select(*(name for name in keys if name in rows.columns), *made, *own)


def free_names(names: Mapping[str, str], taken: tuple[str, ...]) -> dict[str, str]:
    """Return `names` with an underscore appended to each new name that is taken."""
    return {name: f"{new}_" if new in taken else new for name, new in names.items()}


def moment(milliseconds: pl.Expr) -> pl.Expr:
    """Return epoch milliseconds as a timestamp; the smallest and largest possible times become null."""
    return pl.when(milliseconds < MAX_MS).then(to_timestamp(milliseconds))
