"""How many keys a step holds, at a cost that does not grow with its state.

In each batch one key group has its turn and counts the keys of its rows; the driver adds up what each of them counted
last. A group with much to read counts only at every second, third … turn, so that a batch reads the same number of
bytes for it on average, however large the state is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from slackwater.state.pieces import StepState

READ_BYTES: Final = 1 << 20
"""What may be read of the state of a step in each batch, on average."""


def has_turn(state: StepState, *, place: int, key_groups: int, batch: int) -> bool:
    """Return whether the key group at a place, of so many, counts the keys of a step in this batch."""
    round_, turn = divmod(batch, key_groups)
    return turn == place and round_ % (1 + sum(piece.bytes for piece in state.pieces) // READ_BYTES) == 0


def count_keys(state: StepState, keys_of: Mapping[int, tuple[str, ...]]) -> int:
    """Return how many keys a key group has; `keys_of` has the key's columns in each part of its state."""
    found = []
    for piece in state.pieces:
        if piece.rows and piece.part in keys_of:
            [frame] = state.read([piece])
            found.append(frame.select(pl.col(key).alias(str(number)) for number, key in enumerate(keys_of[piece.part])))
    return pl.concat(found).n_unique() if found else 0


def estimated_keys(counted: Mapping[int, int], key_groups: int) -> int | None:
    """Return how many keys all groups have, if those that have not counted are like the others; None if none has."""
    return round(sum(counted.values()) * key_groups / len(counted)) if counted else None
