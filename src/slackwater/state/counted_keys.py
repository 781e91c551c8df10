"""How many keys a step holds, at a cost that does not grow with its state.

In each batch one key group has its turn and counts the keys of its rows, if they changed. A group with much to read
counts only at every second, third … turn, so that a batch reads the same few bytes for it on average, however large the
state is. The driver takes what was counted last, as much of it as it takes for a good estimate: keys are spread over
key groups by a hash, so one group is like the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from slackwater.state.pieces import StepState

READ_BYTES: Final = 4 << 10
"""What may be read of the state of a step in each batch, on average."""
ENOUGH: Final = 10_000
"""Keys of some groups that stand for those of all, within one percent or so."""


def has_turn(state: StepState, *, place: int, key_groups: int, batch: int) -> bool:
    """Return whether the key group at a place, of so many, counts the keys of a step in this batch."""
    round_, turn = divmod(batch, key_groups)
    if turn != place or not (state.is_changed or round_ == 0):
        return False
    return round_ % (1 + sum(piece.bytes for piece in state.pieces) // READ_BYTES) == 0


def count_keys(state: StepState, keys_of: Mapping[int, tuple[str, ...]]) -> int:
    """Return how many keys a key group has; `keys_of` has the key's columns in each part of its state."""
    found = []
    for piece in state.pieces:
        if piece.rows and piece.part in keys_of:
            [frame] = state.read([piece])
            found.append(frame.select(pl.col(key).alias(str(number)) for number, key in enumerate(keys_of[piece.part])))
    return pl.concat(found).n_unique() if found else 0


def estimated_keys(counted: Mapping[int, int], key_groups: int) -> int | None:
    """Return how many keys all groups have; `counted` has those of some, by place, the newest count last."""
    taken: list[int] = []
    for keys in reversed([*counted.values()]):
        if sum(taken) >= ENOUGH:
            break
        taken.append(keys)
    return round(sum(taken) * key_groups / len(taken)) if taken else None
