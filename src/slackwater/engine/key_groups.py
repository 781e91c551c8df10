"""Key groups: the shards that keys are hashed onto, a number fixed once per pipeline.

A key group is the unit of state and of parallelism. Its label is the value that Spark shuffles by.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import polars as pl

from slackwater.base.stable_hash import hash_columns

_MASK: Final = 0xFFFFFFFF


def group_of(rows: pl.DataFrame, keys: list[str], groups: int) -> pl.Series:
    """Return the key group (0 … groups - 1) of each row. It never changes: it determines where state is stored."""
    return pl.Series("__group", (hash_columns(rows, keys) % np.uint64(groups)).astype(np.int32))


@cache
def labels(groups: int) -> tuple[int, ...]:
    """Return a label per key group, chosen so that Spark's hash puts group g on partition g mod partitions.

    The labels 0, 1, 2, … would collide: 64 of them hashed onto 64 partitions used 37. Because
    `groups` is a power of two, labels that spread over `groups` partitions spread evenly over any
    smaller power of two as well.
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < groups:
        found.setdefault(spark_hash(candidate) % groups, candidate)
        candidate += 1
    return tuple(found[group] for group in range(groups))


def spark_hash(value: int) -> int:
    """Return Spark's `hash` (Murmur3, seed 42) of an integer, as a signed number."""
    mixed = (value & _MASK) * 0xCC9E2D51 & _MASK
    mixed = ((mixed << 15 | mixed >> 17) & _MASK) * 0x1B873593 & _MASK
    state = 42 ^ mixed
    state = ((state << 13 | state >> 19) & _MASK) * 5 + 0xE6546B64 & _MASK
    state ^= 4
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state
