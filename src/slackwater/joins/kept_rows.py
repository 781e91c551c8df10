"""The rows that a join keeps of one side, so that a batch reads those that may match and no others.

Rows lie in pieces, each at a node of a tree by the bits of the key's hash: at the root are rows of all keys, at its
16 children those of a sixteenth each, and so on.

1. What a batch brings is added at the root, packed as it came.
2. `near` finds the pieces that may hold partners: the nodes of the sought keys, and only of the sought times.
3. `tidy` merges the pieces of a node that has many. What is too large for one piece moves on to the children.
4. `forget` drops pieces that are over as a whole, unread. `over` takes the rows out one by one, for a side of which
   something is emitted then; what it has to put back it puts into pieces by time, those soon to be over in small ones.

That a row met another is noted beside its piece, which is not written again for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.ground.stable_hash import U64, hash_columns
from slackwater.ground.times import MAX_MS
from slackwater.state.packets import Packet
from slackwater.state.packing import pack
from slackwater.state.pieces import COMPACT_AT, Piece, StepState
from slackwater.state.step_time import StepTime

LARGE_BYTES: Final = 512 << 10
"""Larger pieces are not merged, for batches that bring as much touch all nodes anyway; what is merged is split."""
_ROOT: Final = 1
"""A node's number: a one, and after it four bits for each level below the root."""
_DEEPEST: Final = 8
_SLICED: Final = 8
"""The tier of pieces that are laid out by time."""
_WHEEL: Final = 8
"""Of rows that are over within so many advances of the watermark, there is a piece for each. Later ones have pieces
that cover so many advances each, then so many times as many, and so on: a row moves from one to the next, once each."""
_MARKS: Final = 8
"""Added to the part of a side: the part of its marks."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What is kept of a side, and for how long."""

    part: int
    types: pl.Schema
    """The columns, with the event time in `__end`."""
    keys: tuple[str, ...]
    reach_ms: int
    """A row is over, and nothing can match it any more, when the watermark is more than this past its time."""
    is_awaited: bool = False
    """Whether rows are taken out one by one as soon as they are over, or only dropped some time after."""
    is_marked: bool = False
    """Whether it is noted of rows that they met another, in `__met`."""
    is_numbered: bool = False
    """Whether rows are numbered in the order they came, in `__arrived`."""
    is_cleaned: bool = False
    """Whether merging leaves out rows that newer ones replace: then it is done sooner, and with pieces of any size."""


class KeptRows:
    """The rows of one side in one key group, during one batch."""

    def __init__(self, state: StepState, kept: Kept) -> None:
        self.state = state
        self.kept = kept
        added: dict[str, pl.DataType] = {"__met": pl.Boolean()} if kept.is_marked else {}
        added |= {"__arrived": pl.Int64()} if kept.is_numbered else {}
        self._types = pl.Schema(dict(kept.types) | added)

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of this side."""
        return [piece for piece in self.state.pieces if piece.part == self.kept.part]

    def near(self, hashes: U64, first_ms: int, last_ms: int) -> list[Piece]:
        """Return the pieces that may hold rows of some keys between two times."""
        known: dict[int, set[int]] = {}
        found = []
        for piece in self.pieces:
            if piece.max_end_ms < first_ms or piece.min_end_ms > last_ms:
                continue
            depth = _depth(piece.bucket)
            if depth not in known:
                known[depth] = set(np.unique(_nodes(hashes, depth)).tolist())
            if piece.bucket in known[depth]:
                found.append(piece)
        return found

    def read(self, pieces: Sequence[Piece]) -> pl.DataFrame:
        """Return the rows of `pieces`, in the order of the pieces."""
        frames = self.state.read(pieces)
        ordered = sorted(pieces, key=lambda piece: piece.seq)
        if self.kept.is_marked:
            marks = {piece.bucket: piece for piece in self._marks(pieces)}
            frames = [
                frame.with_columns(self._met(frame, marks.get(piece.seq)))
                for piece, frame in zip(ordered, frames, strict=True)
            ]
        if self.kept.is_numbered:
            frames = [_numbered(frame, piece.seq) for piece, frame in zip(ordered, frames, strict=True)]
        columns = self._types.names()
        return pl.concat([frame.select(columns) for frame in frames]) if frames else pl.DataFrame(schema=self._types)

    def add(self, packets: Sequence[Packet], rows: pl.DataFrame) -> None:
        """Add a batch's rows, with `__met` if they are marked; `packets` hold the same, unless some were taken out."""
        if rows.is_empty():
            return
        is_whole = sum(packet.rows for packet in packets) == rows.height
        size = sum(len(packet.payload or b"") for packet in packets)
        if not is_whole or (len(packets) > 1 and size <= LARGE_BYTES):
            self._append(rows, _ROOT, 0)
            return
        start = 0
        for packet in packets:
            self.add_packed([packet])
            if self.kept.is_marked and (met := rows["__met"].slice(start, packet.rows)).any():
                self._mark(self.state.pieces[-1], met)
            start += packet.rows

    def add_packed(self, packets: Sequence[Packet]) -> None:
        """Add a batch's rows unread."""
        for packet in packets:
            facts = self._facts(packet.min_end_ms, packet.max_end_ms, _ROOT)
            self.state.append_blob(packet.payload or b"", rows=packet.rows, **facts)

    def mark(self, pieces: Sequence[Piece], before: pl.Series, after: pl.Series) -> None:
        """Note which rows of `pieces` have met another, in the order of `read`; untouched pieces stay as they are."""
        start = 0
        for piece in sorted(pieces, key=lambda piece: piece.seq):
            met = after.slice(start, piece.rows)
            if met.sum() > before.slice(start, piece.rows).sum():
                self.state.drop(self._marks([piece]))
                self._mark(piece, met)
            start += piece.rows

    def forget(self, watermark_ms: int) -> None:
        """Drop the pieces that are over as a whole."""
        self._drop([piece for piece in self.pieces if piece.max_end_ms + self.kept.reach_ms < watermark_ms])

    def over(self, time: StepTime) -> pl.DataFrame:
        """Take out the rows that are over."""
        woken = [piece for piece in self.pieces if piece.wake_ms <= time.watermark_ms]
        rows = self._take(woken)
        is_over = rows["__end"] + self.kept.reach_ms < time.watermark_ms
        self._append_by_time(rows.filter(~is_over), _ROOT, time, _mean_bytes(woken))
        return rows.filter(is_over)

    def put_back(self, rows: pl.DataFrame, time: StepTime) -> None:
        """Keep rows that were taken out, until the watermark reaches the time they have now."""
        size = rows.estimated_size() / max(1, rows.height) / 2  # packed, rows have about half of their size
        self._append_by_time(rows, _ROOT, time, size)

    def tidy(self, time: StepTime, stagger: int, clean: Callable[[pl.DataFrame], pl.DataFrame] | None = None) -> None:
        """Merge the pieces of the most crowded node; `clean` may leave out rows that nothing can match any more."""
        by_node: dict[tuple[int, int], list[Piece]] = {}
        for piece in self.pieces:
            if piece.bytes <= LARGE_BYTES or self.kept.is_cleaned:
                by_node.setdefault((piece.bucket, piece.tier), []).append(piece)
        if not by_node:
            return
        (node, tier), crowd = max(sorted(by_node.items()), key=lambda item: len(item[1]))
        if len(crowd) < self._crowd(node, tier, stagger):
            return
        rows = self._take(crowd)
        rows = rows.filter(pl.col("__end") + self.kept.reach_ms >= time.watermark_ms)
        rows = rows if clean is None else clean(rows)
        if tier == _SLICED:
            self._append_by_time(rows, node, time, _mean_bytes(crowd))
        else:
            self._spread(rows, node, tier + 1, _mean_bytes(crowd))

    def _crowd(self, node: int, tier: int, stagger: int) -> int:
        """Return how many pieces of a node are merged."""
        if tier == _SLICED:
            return 4 * COMPACT_AT  # more than the wheel has
        most = max(2, COMPACT_AT // 4) if self.kept.is_cleaned else COMPACT_AT
        return most + (stagger % 4 if node == _ROOT else 0)

    def _append_by_time(self, rows: pl.DataFrame, node: int, time: StepTime, row_bytes: float) -> None:
        """Store rows that were looked at, by when they must be looked at again."""
        if rows.is_empty():
            return
        unit_ms = max(1, time.watermark_ms - time.previous_ms)
        advances = (pl.col("__end") + (self.kept.reach_ms + 1 - time.watermark_ms)) / unit_ms
        level = advances.clip(lower_bound=1).log(_WHEEL).floor().cast(pl.Int64)
        slot = (level * _WHEEL + (advances / pl.lit(_WHEEL, dtype=pl.Int64).pow(level)).floor()).alias("__slot")
        for part in rows.with_columns(slot).partition_by("__slot", include_key=False, maintain_order=True):
            self._spread(part, node, _SLICED, row_bytes)

    def _spread(self, rows: pl.DataFrame, node: int, tier: int, row_bytes: float) -> None:
        """Store rows at a node, or below it if they are too large for one piece."""
        depth = _depth(node)
        if rows.height * row_bytes <= LARGE_BYTES or depth == _DEEPEST:
            self._append(rows, node, tier)
            return
        below = pl.Series("__node", _nodes(hash_columns(rows, [*self.kept.keys]), depth + 1))
        parts = rows.with_columns(below).partition_by("__node", include_key=False, as_dict=True, maintain_order=True)
        for (child,), part in sorted(parts.items()):
            self._spread(part, child, tier if tier == _SLICED else 0, row_bytes)

    def _append(self, rows: pl.DataFrame, node: int, tier: int) -> None:
        if rows.height:
            names = [name for name in self._types if name in rows.columns]
            self.state.append_whole(rows.select(names), lambda part: self._described(part, node), tier)

    def _described(self, rows: pl.DataFrame, node: int) -> dict[str, Any]:
        return self._facts(rows["__end"].min(), rows["__end"].max(), node)

    def _facts(self, first_ms: Any, last_ms: Any, node: int) -> dict[str, Any]:  # noqa: ANN401  Polars says any
        wake_ms = (first_ms if self.kept.is_awaited else last_ms) + self.kept.reach_ms + 1
        return {
            "min_end_ms": first_ms, "max_end_ms": last_ms, "wake_ms": wake_ms, "bucket": node, "part": self.kept.part
        }  # fmt: skip

    def _take(self, pieces: Sequence[Piece]) -> pl.DataFrame:
        rows = self.read(pieces)
        self._drop(pieces)
        return rows

    def _drop(self, pieces: Sequence[Piece]) -> None:
        self.state.drop([*pieces, *self._marks(pieces)])

    def _marks(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Return the marks of some pieces; a mark's bucket is the number of its piece."""
        if not self.kept.is_marked:
            return []
        numbers = {piece.seq for piece in pieces}
        part = self.kept.part + _MARKS
        return [piece for piece in self.state.pieces if piece.part == part and piece.bucket in numbers]

    def _mark(self, piece: Piece, met: pl.Series) -> None:
        blob = pack(pl.DataFrame({"__met": met}), self.state.step)
        facts = {"min_end_ms": piece.min_end_ms, "max_end_ms": piece.max_end_ms, "wake_ms": MAX_MS}
        part = self.kept.part + _MARKS
        self.state.append_blob(blob, rows=0, **facts, bucket=piece.seq, part=part)

    def _met(self, frame: pl.DataFrame, marks: Piece | None) -> pl.Series:
        if marks is not None:
            return self.state.read([marks])[0]["__met"]
        return frame.get_column("__met", default=pl.repeat(value=False, n=frame.height, eager=True).alias("__met"))


def _numbered(frame: pl.DataFrame, piece: int) -> pl.DataFrame:
    """Return rows with their numbers: those that were merged have kept theirs, others follow their piece."""
    if "__arrived" in frame.columns:
        return frame
    return frame.with_columns(((piece << 32) + pl.int_range(pl.len(), dtype=pl.Int64)).alias("__arrived"))


def _depth(node: int) -> int:
    return (node.bit_length() - 1) // 4


def _nodes(hashes: U64, depth: int) -> U64:
    """Return the nodes at some depth that hashes belong to; their lower bits have chosen the key group."""
    if depth == 0:
        return np.ones(min(1, len(hashes)), np.uint64)
    nodes: U64 = (hashes >> np.uint64(64 - 4 * depth)) | np.uint64(1 << 4 * depth)
    return nodes


def _mean_bytes(pieces: Sequence[Piece]) -> float:
    return sum(piece.bytes for piece in pieces) / max(1, sum(piece.rows for piece in pieces))
