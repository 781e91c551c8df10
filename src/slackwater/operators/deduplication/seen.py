"""The state of `keep="first"`: a 128-bit hash of each key that was seen, and until when to remember it; 20 bytes a key.

A piece has the keys that are forgotten within one slice of time, sorted by hash, in two blobs:

1. *heads*, the first 32 bits of each hash. A batch reads the heads of every piece, a fifth of the state; a head that
   is not among them belongs to a key that was never seen.
2. *tails*, the other 96 bits and the time, in the order of the heads. They are read only for pieces with an equal head,
   which means a duplicate for all but one key in many thousands.

When a slice has passed, its pieces are dropped unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.base.stable_hash import U64, hash_wide
from slackwater.base.times import MAX_MS
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.operators.state.packing import pack
from slackwater.operators.state.pieces import COMPACT_AT, MOST_BYTES, Piece, StepState

_HEADS, _TAILS = 0, 1
"""The parts of the index for the two blobs of a piece; the tails follow their heads."""
_MOST_KEYS: Final = 200_000
"""The most keys in a piece, so that the tails are somewhat smaller than the size limit of a blob."""
_LONGEST_SLICE_MS: Final = 1 << 31
"""The longest slice, because a time within a slice has 32 bits."""
_SLICES: Final = 16
_HEAD_BITS: Final = np.uint64(32)
_REST: Final = np.uint64(0xFFFFFFFF)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class KeyHashes:
    """The hashes of some keys, in three parts."""

    heads: npt.NDArray[np.uint32]
    rests: npt.NDArray[np.uint32]
    lows: U64

    @classmethod
    def of(cls, rows: pl.DataFrame, keys: tuple[str, ...]) -> KeyHashes:
        """Return the hashes of the keys of `rows`."""
        high, low = hash_wide(rows, list(keys))
        return cls((high >> _HEAD_BITS).astype(np.uint32), (high & _REST).astype(np.uint32), low)

    def take(self, places: npt.NDArray[np.int64] | Flags) -> KeyHashes:
        """Return the hashes at `places`."""
        return KeyHashes(self.heads[places], self.rests[places], self.lows[places])

    def is_first(self) -> Flags:
        """Return which hashes are the first of their value."""
        frame = pl.DataFrame({"a": self.heads, "b": self.rests, "c": self.lows})
        return frame.select(pl.struct("a", "b", "c").is_first_distinct()).to_series().to_numpy()


def until_ms(times: npt.NDArray[np.int64], within_ms: int) -> npt.NDArray[np.int64]:
    """Return the last watermark at which a key with a row at each of `times` is remembered; `MAX_MS` for forever."""
    return np.full_like(times, MAX_MS) if within_ms >= MAX_MS else np.minimum(times + within_ms, MAX_MS)


def slice_ms(within_ms: int) -> int:
    """Return the length of a slice: the interval of time whose keys are forgotten together."""
    return min(max(within_ms // _SLICES, 1), _LONGEST_SLICE_MS)


class SeenKeys:
    """The keys that one step has seen in one key group, during one batch.

    A key is remembered until the watermark is past the time that was stored with it.
    """

    def __init__(self, state: StepState, slice_ms: int) -> None:
        self.state = state
        self.slice_ms = slice_ms

    def forget(self, watermark_ms: int) -> None:
        """Drop the pieces whose keys are all forgotten."""
        self.state.drop([piece for piece in self.state.pieces if is_forgotten(piece.max_end_ms + 1, watermark_ms)])

    def known(self, keys: KeyHashes, watermark_ms: int) -> Flags:
        """Return which of `keys` are remembered."""
        found = np.zeros(len(keys.heads), dtype=bool)
        # Sorted, so that consecutive searches are close to each other in memory.
        open_ = np.argsort(keys.heads, kind="stable")
        for heads_of, tails_of in self._pairs():
            if not len(open_):
                break
            if is_forgotten(heads_of.max_end_ms + 1, watermark_ms):
                continue
            heads, asked = self._heads(heads_of), keys.heads[open_]
            first = np.searchsorted(heads, asked)
            is_hit = heads[np.minimum(first, len(heads) - 1)] == asked
            if not is_hit.any():
                continue
            rows, first = open_[is_hit], first[is_hit]
            counts = np.searchsorted(heads, asked[is_hit], side="right") - first
            found[rows] |= self._match(keys.take(rows), first, counts, (heads_of, tails_of), watermark_ms)
            open_ = open_[~found[open_]]
        return found

    def add(self, keys: KeyHashes, until_ms: npt.NDArray[np.int64]) -> None:
        """Remember `keys`, each until its time."""
        slices = until_ms // self.slice_ms
        for number in np.unique(slices).tolist():
            here = slices == number
            self._store(keys.take(here), until_ms[here], tier=0)

    def untils(self, key: KeyHashes | None = None) -> list[int]:
        """Return until when each key is remembered, or the one in `key` if it is; the state is not modified."""
        found: list[int] = []
        for heads_of, tails_of in self._pairs():
            tails = self._tails(heads_of, tails_of)
            if key is not None:
                is_equal = (self._heads(heads_of) == key.heads[0]) & (tails["rest"].to_numpy() == key.rests[0])
                tails = tails.filter(pl.Series(is_equal & (tails["low"].to_numpy() == key.lows[0])))
            found += tails["until"].to_list()
        return found

    def compact(self, watermark_ms: int, *, closed_ms: int, stagger: int) -> None:
        """Merge pieces of one slice, if there are too many, or if it ends before `closed_ms` and none will be added."""
        crowd = self._crowded(closed_ms, stagger)
        if not crowd:
            return
        pairs = [pair for pair in self._pairs() if pair[0].seq in crowd]
        heads = np.concatenate([self._heads(pair[0]) for pair in pairs])
        tails = pl.concat([self._tails(*pair) for pair in pairs])
        tier = 1 + max(pair[0].tier for pair in pairs)
        self.state.drop([piece for pair in pairs for piece in pair])
        until = tails["until"].to_numpy()
        alive = np.flatnonzero(~is_forgotten(until + 1, watermark_ms))
        if len(alive):
            self._store(
                KeyHashes(heads, tails["rest"].to_numpy(), tails["low"].to_numpy()).take(alive), until[alive], tier
            )

    def _store(self, keys: KeyHashes, until_ms: npt.NDArray[np.int64], tier: int) -> None:
        order = np.lexsort((keys.lows, keys.rests, keys.heads))
        for start in range(0, len(order), _MOST_KEYS):
            places = order[start : start + _MOST_KEYS]
            part, until = keys.take(places), until_ms[places]
            first, last = int(until.min()), int(until.max())
            facts = {"min_end_ms": first, "max_end_ms": last, "wake_ms": last + 1, "tier": tier}
            heads = pl.DataFrame({"head": part.heads})
            after = (until - first).astype(np.uint32)
            tails = pl.DataFrame({"rest": part.rests, "low": part.lows, "after": after})
            self.state.append_blob(pack(heads, self.state.step), rows=len(places), part=_HEADS, **facts)
            self.state.append_blob(pack(tails, self.state.step), rows=0, part=_TAILS, **facts)

    def _pairs(self) -> Iterator[tuple[Piece, Piece]]:
        """Yield the heads and tails of each piece, newest first, where most duplicates are found."""
        by_seq = {piece.seq: piece for piece in self.state.pieces}
        for piece in reversed(self.state.pieces):
            if piece.part == _HEADS:
                yield piece, by_seq[piece.seq + 1]

    def _heads(self, piece: Piece) -> npt.NDArray[np.uint32]:
        return self.state.read([piece])[0]["head"].to_numpy()

    def _tails(self, heads_of: Piece, tails_of: Piece) -> pl.DataFrame:
        until = pl.col("after").cast(pl.Int64) + heads_of.min_end_ms
        return self.state.read([tails_of])[0].select("rest", "low", until=until)

    def _match(
        self,
        keys: KeyHashes,
        first: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
        pair: tuple[Piece, Piece],
        watermark_ms: int,
    ) -> Flags:
        """Return which of `keys` a piece remembers; the head of each occurs there `counts` times, from `first` on."""
        [tails] = self.state.read(pair[1:])
        row = np.repeat(np.arange(len(first)), counts)
        place = np.repeat(first, counts) + np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        is_equal = tails["rest"].to_numpy()[place] == keys.rests[row]
        is_equal &= tails["low"].to_numpy()[place] == keys.lows[row]
        is_equal &= ~is_forgotten(tails["after"].to_numpy()[place] + 1, watermark_ms - pair[0].min_end_ms)
        matched = np.zeros(len(first), dtype=bool)
        matched[row[is_equal]] = True
        return matched

    def _crowded(self, closed_ms: int, stagger: int) -> set[int]:
        """Return the numbers of the heads of the pieces to merge."""
        by_slice: dict[int, list[Piece]] = {}
        sizes = {piece.seq: piece.bytes for piece in self.state.pieces}
        for piece in self.state.pieces:
            number = piece.min_end_ms // self.slice_ms
            if piece.part != _HEADS or sizes[piece.seq + 1] > MOST_BYTES // 2:
                continue  # large enough: merging it would only copy it
            if piece.max_end_ms // self.slice_ms == number:
                by_slice.setdefault(number, []).append(piece)
        for number, pieces in sorted(by_slice.items()):
            if (number + 1) * self.slice_ms <= closed_ms and len(pieces) > 1:
                return {piece.seq for piece in pieces}
            for tier in sorted({piece.tier for piece in pieces}):
                alike = [piece.seq for piece in pieces if piece.tier == tier]
                if len(alike) >= COMPACT_AT + (stagger % 4 if tier == 0 else 0):
                    return {*alike}
        return set()
