"""Counting the keys in a step's state, at a cost that does not grow with the state.

The key groups take turns: in each batch one of them counts the keys of its rows, if they changed. A group with a lot to
read counts only every second, third … turn, so that a batch reads the same few bytes on average, however large the
state is. The driver uses the latest counts, as many as a good estimate needs: keys are hashed onto key groups, so the
groups are alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from slackwater.operators.state.pieces import StepState

READ_BYTES: Final = 4 << 10
"""The bytes of a step's state that a batch may read to count keys, on average."""
ENOUGH: Final = 10_000
"""The number of counted keys from which the total is estimated, to within about one percent."""


def has_turn(state: StepState, *, place: int, key_groups: int, batch: int) -> bool:
    """Return whether key group number `place` of `key_groups` counts the keys of a step in this batch."""
    round_, turn = divmod(batch, key_groups)
    if turn != place or not (state.is_changed or round_ == 0):
        return False
    return round_ % (1 + sum(piece.bytes for piece in state.pieces) // READ_BYTES) == 0


def count_keys(state: StepState, keys_of: Mapping[int, tuple[str, ...]]) -> int:
    """Return the number of keys in a key group's state; `keys_of` has the key columns of each part of the state."""
    found = []
    for piece in state.pieces:
        if piece.rows and piece.part in keys_of:
            [frame] = state.read([piece])
            found.append(frame.select(pl.col(key).alias(str(number)) for number, key in enumerate(keys_of[piece.part])))
    return pl.concat(found).n_unique() if found else 0


def estimated_keys(counted: Mapping[int, int], key_groups: int) -> int | None:
    """Estimate the number of keys in all groups from `counted`, the counts of some by place, newest last."""
    taken: list[int] = []
    for keys in reversed([*counted.values()]):
        if sum(taken) >= ENOUGH:
            break
        taken.append(keys)
    return round(sum(taken) * key_groups / len(taken)) if taken else None
