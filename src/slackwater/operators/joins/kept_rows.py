"""The stored rows of one side of a join, laid out so that a batch reads only those that may match.

Rows are in pieces. Each has its range of times and belongs to a node of a tree, by the bits of the key's hash.

1. The rows of a batch are added at the root, as packed by FRONT.
2. `near` finds the pieces that may contain partners, by the nodes of the keys and by the times.
3. `tidy` merges the pieces of a node that has many, or much. Rows that are too large for one piece are split: by time,
   into slices not shorter than the interval that one row looks in, then by key, into the children of the node.
4. `forget` drops pieces whose rows have all expired, unread. `over` removes individual rows, for a side that emits
   something when they expire; the rows it puts back are in pieces by time, small ones for those that expire soon.

So a row reads one or two slices of the nodes of its key, however much is stored. Large batches leave their packets at
the root as long as reading them costs no more than a few times what a batch brings; smaller batches that follow move
them down. Whether a row has matched another is stored separately from its piece, which need not be rewritten for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.base.stable_hash import U64, hash_columns
from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.joins import nodes
from slackwater.operators.joins.nodes import I64, near
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import pack
from slackwater.operators.state.pieces import COMPACT_AT, Piece, StepState

LARGE_BYTES: Final = 512 << 10
"""What a node holds at most before its rows move down, and the size at which rows are split."""
_BATCHES: Final = 4
"""The number of large batches whose packets stay at the root: most rows of a fast stream expire there, unread."""
_SLICES: Final = 16
"""The least number of slices into which the times of a side are divided, if they are not too short for that."""
_SLICED: Final = 8
"""The tier of pieces that are laid out by time."""
_WHEEL: Final = 8
"""The base of the timing wheel: rows that expire within this many advances of the watermark have a piece per advance.
Later ones have pieces that cover this many advances each, then its square, and so on; a row moves down level by
level."""
RANK: Final = "__rank"
_MARKS: Final = 8
"""The offset from the part of a side to the part that has its match flags."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """How the rows of a side are stored, and for how long."""

    part: int
    types: pl.Schema
    """The columns, with the event time in `__end`."""
    keys: tuple[str, ...]
    reach_ms: int
    """A row has expired (is over), and nothing can match it, when the watermark is more than this past its time."""
    width_ms: int | None = None
    """The length of the interval in which a row of the other side looks for partners; None if hardly any row does."""
    is_awaited: bool = False
    """Whether rows are removed individually as soon as they expire, or only dropped some time later."""
    is_marked: bool = False
    """Whether `__met` records which rows have matched another."""
    is_ranked: bool = False
    """Whether `__rank`, which is not stored, orders rows of the same time by their places."""
    is_cleaned: bool = False
    """Whether merging removes rows that newer ones replace; it is then done sooner, and with pieces of any size."""


class KeptRows:
    """The rows of one side in one key group, during one batch."""

    def __init__(self, state: StepState, kept: Kept) -> None:
        self.state = state
        self.kept = kept
        added: dict[str, pl.DataType] = {"__met": pl.Boolean()} if kept.is_marked else {}
        added |= {RANK: pl.Int64()} if kept.is_ranked else {}
        self._types = pl.Schema(dict(kept.types) | added)
        self._added_bytes = 0
        self._read_bytes = 0

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of this side."""
        return [piece for piece in self.state.pieces if piece.part == self.kept.part]

    def near(self, hashes: U64, first_ms: I64 | int, last_ms: I64 | int) -> list[Piece]:
        """Return the pieces that may contain rows with one of these key hashes between its two times."""
        return near(self.pieces, hashes, first_ms, last_ms)

    def read(self, pieces: Sequence[Piece]) -> pl.DataFrame:
        """Return the rows of `pieces`, in the order of the pieces."""
        frames = self.state.read(pieces)
        self._read_bytes += sum(piece.bytes for piece in pieces)
        ordered = sorted(pieces, key=lambda piece: piece.seq)
        if self.kept.is_marked:
            marks = {piece.bucket: piece for piece in self._marks(pieces)}
            frames = [
                frame.with_columns(self._met(frame, marks.get(piece.seq)))
                for piece, frame in zip(ordered, frames, strict=True)
            ]
        if self.kept.is_ranked:
            frames = [_placed(frame, piece.seq) for piece, frame in zip(ordered, frames, strict=True)]
        columns = [name for name in self._types if name != RANK]
        rows = pl.concat([frame.select(columns) for frame in frames]) if frames else pl.DataFrame(schema=self._types)
        return ranked(rows) if self.kept.is_ranked else rows

    def add(self, packets: Sequence[Packet], rows: pl.DataFrame) -> None:
        """Add a batch's rows, with `__met` if marked; `packets` contain the same rows, or more if some were removed."""
        if rows.is_empty():
            return
        is_whole = sum(packet.rows for packet in packets) == rows.height
        size = sum(len(packet.payload or b"") for packet in packets)
        self._added_bytes += size
        if not is_whole or (len(packets) > 1 and size <= LARGE_BYTES):
            self._append(rows, nodes.ROOT, 0)
            return
        start = 0
        for packet in packets:
            self._append_packed(packet)
            if self.kept.is_marked and (met := rows["__met"].slice(start, packet.rows)).any():
                self._mark(self.state.pieces[-1], met)
            start += packet.rows

    def add_packed(self, packets: Sequence[Packet]) -> None:
        """Add a batch's rows unread."""
        for packet in packets:
            self._added_bytes += len(packet.payload or b"")
            self._append_packed(packet)

    def mark(self, pieces: Sequence[Piece], before: pl.Series, after: pl.Series) -> None:
        """Record which rows of `pieces` have matched another, in the order of `read`; skip unchanged pieces."""
        start = 0
        for piece in sorted(pieces, key=lambda piece: piece.seq):
            met = after.slice(start, piece.rows)
            if met.sum() > before.slice(start, piece.rows).sum():
                self.state.drop(self._marks([piece]))
                self._mark(piece, met)
            start += piece.rows

    def forget(self, watermark_ms: int) -> None:
        """Drop the pieces whose rows have all expired."""
        self._drop(
            [piece for piece in self.pieces if is_forgotten(piece.max_end_ms + 1, watermark_ms, self.kept.reach_ms)]
        )

    def over(self, time: StepTime) -> pl.DataFrame:
        """Remove and return the rows that have expired."""
        woken = [piece for piece in self.pieces if piece.wake_ms <= time.watermark_ms]
        rows = self._take(woken)
        is_over = is_forgotten(rows["__end"] + 1, time.watermark_ms, self.kept.reach_ms)
        self._append_by_time(rows.filter(~is_over), nodes.ROOT, time, _mean_bytes(woken))
        return rows.filter(is_over)

    def put_back(self, rows: pl.DataFrame, time: StepTime) -> None:
        """Store rows that were removed, until the watermark reaches their new time."""
        size = rows.estimated_size() / max(1, rows.height) / 2  # packing roughly halves the size
        self._append_by_time(rows, nodes.ROOT, time, size)

    def tidy(self, time: StepTime, stagger: int, clean: Callable[[pl.DataFrame], pl.DataFrame] | None = None) -> None:
        """Merge the pieces of crowded nodes; `clean` may remove rows that nothing can match any more.

        What is rewritten follows what the batch added and read, so that a small batch does not pay for a large one.
        """
        budget = 4 * LARGE_BYTES + 2 * (_BATCHES * self._added_bytes + self._read_bytes)
        while budget > 0 and (crowd := self._crowd(stagger)):
            sizes = np.cumsum([piece.bytes for piece in crowd])
            crowd = crowd[: max(2, int(np.searchsorted(sizes, budget, side="right")))]
            budget -= sum(piece.bytes for piece in crowd)
            self._merge(crowd, time, clean)

    def _merge(
        self, crowd: Sequence[Piece], time: StepTime, clean: Callable[[pl.DataFrame], pl.DataFrame] | None
    ) -> None:
        node, tier, row_bytes = crowd[0].bucket, crowd[0].tier, _mean_bytes(crowd)
        slice_ms = self._slice_ms()
        rows = self._take(crowd)
        rows = rows.filter(~is_forgotten(pl.col("__end") + 1, time.watermark_ms, self.kept.reach_ms))
        rows = rows if clean is None else clean(rows)
        if tier == _SLICED:
            self._append_by_time(rows, node, time, row_bytes)
        elif self._is_long(rows["__end"].min(), rows["__end"].max(), slice_ms) and _is_large(rows, row_bytes):
            for part in _by_slice(rows, slice_ms):
                self._spread(part, node, 1, row_bytes)
        else:
            self._spread(rows, node, min(tier + 1, _SLICED - 1), row_bytes)

    def _crowd(self, stagger: int) -> list[Piece]:
        """Return the pieces of the most crowded group that must be merged, oldest first; none if there is none."""
        groups: dict[tuple[int, int, int], list[Piece]] = {}
        slice_ms, is_sought = self._slice_ms(), self.kept.width_ms is not None
        for piece in self.pieces:
            is_deepest = nodes.depth(piece.bucket) == nodes.DEEPEST
            is_whole = piece.bytes > LARGE_BYTES // 2 if is_deepest else not is_sought and piece.bytes > LARGE_BYTES
            if is_whole and not self.kept.is_cleaned:
                continue  # it would only be copied
            groups.setdefault((piece.bucket, piece.tier, self._slice(piece, slice_ms)), []).append(piece)
        crowds = [
            (self._excess(group, node, tier, stagger), -node, -tier, -slice_, group)
            for (node, tier, slice_), group in groups.items()
        ]
        excess, *_, crowd = max(crowds, key=lambda each: each[:-1], default=(0.0, []))
        return crowd if excess >= 1 else []

    def _excess(self, group: Sequence[Piece], node: int, tier: int, stagger: int) -> float:
        """Return how crowded a group of pieces is; from 1 on, it must be merged."""
        if tier == _SLICED:
            return len(group) / (4 * COMPACT_AT)  # more than the wheel has
        most = max(2, COMPACT_AT // 4) if self.kept.is_cleaned else COMPACT_AT
        most += stagger % 4 if node == nodes.ROOT else 0
        small = sum(piece.bytes <= LARGE_BYTES or self.kept.is_cleaned for piece in group)
        if self.kept.width_ms is None or nodes.depth(node) == nodes.DEEPEST:
            return small / most
        most_bytes = LARGE_BYTES * (2 if node == nodes.ROOT else 1) + 1
        if node == nodes.ROOT:
            # As much as so many batches of this size: they are merged early only for batches that are smaller.
            batch = self._added_bytes
            most_bytes = max(most_bytes, min(most ** (tier + 1) * batch, most * LARGE_BYTES))
            most_bytes = max(most_bytes, _BATCHES * batch) if tier == 0 else most_bytes
        return max(small / most, sum(piece.bytes for piece in group) / most_bytes)

    def _slice_ms(self) -> int | None:
        """Return the length of a slice of time, a power of two; None if rows are not split by time."""
        pieces = self.pieces
        if self.kept.width_ms is None or self.kept.is_cleaned or not pieces:
            return None
        span_ms = max(piece.max_end_ms for piece in pieces) - min(piece.min_end_ms for piece in pieces)
        return 1 << max(self.kept.width_ms, span_ms // _SLICES).bit_length()

    def _slice(self, piece: Piece, slice_ms: int | None) -> int:
        """Return the slice that a piece belongs to; the smallest for pieces that are not yet split by time."""
        is_new = piece.bucket == nodes.ROOT and piece.tier == 0
        if slice_ms is None or is_new or piece.tier == _SLICED:
            return MIN_MS
        if self._is_long(piece.min_end_ms, piece.max_end_ms, slice_ms):
            return MIN_MS
        return (piece.min_end_ms + piece.max_end_ms) // 2 // slice_ms

    @staticmethod
    def _is_long(first_ms: Any, last_ms: Any, slice_ms: int | None) -> bool:  # noqa: ANN401  the stubs of Polars say Any
        """Return whether rows must be split by time; two slices are not too long, so that the length may change."""
        return slice_ms is not None and first_ms is not None and last_ms - first_ms > 2 * slice_ms

    def _append_by_time(self, rows: pl.DataFrame, node: int, time: StepTime, row_bytes: float) -> None:
        """Store rows in pieces by the time at which they must next be processed."""
        if rows.is_empty():
            return
        unit_ms = max(1, time.watermark_ms - time.previous_ms)
        advances = (pl.col("__end") + (self.kept.reach_ms + 1 - time.watermark_ms)) / unit_ms
        level = advances.clip(lower_bound=1).log(_WHEEL).floor().cast(pl.Int64)
        slot = (level * _WHEEL + (advances / pl.lit(_WHEEL, dtype=pl.Int64).pow(level)).floor()).alias("__slot")
        for part in rows.with_columns(slot).partition_by("__slot", include_key=False, maintain_order=True):
            self._spread(part, node, _SLICED, row_bytes)

    def _spread(self, rows: pl.DataFrame, node: int, tier: int, row_bytes: float) -> None:
        """Store rows at a node, or below it if there are too many for one piece."""
        if not _is_large(rows, row_bytes):
            self._append(rows, node, tier)
            return
        level, hashes = nodes.depth(node), hash_columns(rows, [*self.kept.keys])
        if level == nodes.DEEPEST or (hashes == hashes[0]).all():
            # A single key can only be split by time.
            rows, height = rows.sort("__end", maintain_order=True), max(1, int(LARGE_BYTES / row_bytes))
            for start in range(0, rows.height, height):
                self._append(rows[start : start + height], nodes.deepest(hashes[0]), tier)
            return
        below = pl.Series("__node", nodes.nodes(hashes, level + 1))
        parts = rows.with_columns(below).partition_by("__node", include_key=False, as_dict=True, maintain_order=True)
        for (child,), part in sorted(parts.items()):
            self._spread(part, child, tier if tier == _SLICED else 0, row_bytes)

    def _append_packed(self, packet: Packet) -> None:
        facts = self._facts(packet.min_end_ms, packet.max_end_ms, nodes.ROOT)
        self.state.append_blob(packet.payload or b"", rows=packet.rows, **facts)

    def _append(self, rows: pl.DataFrame, node: int, tier: int) -> None:
        if rows.height:
            names = [name for name in self._types if name in rows.columns and name != RANK]
            self.state.append_whole(rows.select(names), lambda part: self._described(part, node), tier)

    def _described(self, rows: pl.DataFrame, node: int) -> dict[str, Any]:
        return self._facts(rows["__end"].min(), rows["__end"].max(), node)

    def _facts(self, first_ms: Any, last_ms: Any, node: int) -> dict[str, Any]:  # noqa: ANN401  the stubs of Polars say Any
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
        """Return the pieces with the match flags of `pieces`; the bucket of each is the number of its piece."""
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


def ranked(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with their ranks by place: by partition, then by offset."""
    names = rows["__part"].fill_null("")
    parts = names.unique().sort()
    if len(parts) <= 1:
        return rows.with_columns(pl.col("__off").alias(RANK))
    # The number of a partition sorts faster than its name.
    numbers = names.replace_strict(parts, pl.int_range(len(parts), dtype=pl.Int64, eager=True))
    order = rows.select(pl.arg_sort_by(numbers, "__off")).to_series().to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return rows.with_columns(pl.Series(RANK, ranks))


def _placed(frame: pl.DataFrame, piece: int) -> pl.DataFrame:
    """Return rows with their places; those stored without one come first, in order of arrival."""
    if "__part" in frame.columns:
        return frame
    arrived = (piece << 32) + pl.int_range(pl.len(), dtype=pl.Int64)
    arrived = pl.col("__arrived") if "__arrived" in frame.columns else arrived
    return frame.with_columns(pl.lit(None, dtype=pl.String).alias("__part"), arrived.alias("__off"))


def _is_large(rows: pl.DataFrame, row_bytes: float) -> bool:
    return rows.height * row_bytes > LARGE_BYTES


def _by_slice(rows: pl.DataFrame, slice_ms: int | None) -> list[pl.DataFrame]:
    """Return rows in parts by their slices of time."""
    number = (pl.col("__end") // slice_ms).alias("__slice")
    return rows.with_columns(number).partition_by("__slice", include_key=False, maintain_order=True)


def _mean_bytes(pieces: Sequence[Piece]) -> float:
    return sum(piece.bytes for piece in pieces) / max(1, sum(piece.rows for piece in pieces))
