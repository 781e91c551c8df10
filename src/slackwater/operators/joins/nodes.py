"""The nodes of stored rows: a tree by the bits of a key's hash, in which the root has the rows of all keys.

Each node has 16 children. Its number is a one, followed by four bits of the hash for each level below the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from slackwater.base.stable_hash import U64
from slackwater.operators.state.pieces import Piece

I64 = npt.NDArray[np.int64]

ROOT: Final = 1
DEEPEST: Final = 8
_BITS: Final = 4


def depth(node: int) -> int:
    """Return how many levels a node is below the root."""
    return (node.bit_length() - 1) // _BITS


def nodes(hashes: U64, level: int) -> U64:
    """Return the nodes of `hashes` at a level, by their upper bits; the lower bits determine the key group."""
    if level == 0:
        return np.ones(len(hashes), np.uint64)
    found: U64 = (hashes >> np.uint64(64 - _BITS * level)) | np.uint64(1 << _BITS * level)
    return found


def deepest(hash_: np.uint64) -> int:
    """Return the node of a hash at the lowest level."""
    return int(nodes(np.array([hash_]), DEEPEST)[0])


def near(pieces: Sequence[Piece], hashes: U64, first_ms: I64 | int, last_ms: I64 | int) -> list[Piece]:
    """Return the pieces that may contain rows with one of these hashes between its two times."""
    if not len(hashes):
        return []
    first, last = np.broadcast_to(first_ms, len(hashes)), np.broadcast_to(last_ms, len(hashes))
    lowest, highest = int(first.min()), int(last.max())
    by_level: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.max_end_ms >= lowest and piece.min_end_ms <= highest:
            by_level.setdefault(depth(piece.bucket), []).append(piece)
    found = by_level.pop(0, [])
    for level, some in sorted(by_level.items()):
        asked = nodes(hashes, level)
        order = np.argsort(asked, kind="stable")
        asked = asked[order]
        starts = np.concatenate([[0], np.flatnonzero(asked[1:] != asked[:-1]) + 1])
        known = asked[starts]
        lows, highs = np.minimum.reduceat(first[order], starts), np.maximum.reduceat(last[order], starts)
        mine = np.array([piece.bucket for piece in some], np.uint64)
        places = np.minimum(np.searchsorted(known, mine), len(known) - 1)
        facts = zip(some, (known[places] == mine).tolist(), lows[places].tolist(), highs[places].tolist(), strict=True)
        found += [
            piece for piece, is_asked, low, high in facts
            if is_asked and piece.max_end_ms >= low and piece.min_end_ms <= high
        ]  # fmt: skip
    return found
