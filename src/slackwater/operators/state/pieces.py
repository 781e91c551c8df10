"""Pieces: the state of one step in one key group, as a few large blobs.

A piece is a packed frame of state rows. Rows are appended as new pieces and merged when something
fires, so that the cost of a batch depends on what it touches, not on the size of the state. For each
piece, the index has its range of `__end` and when it must next be processed; if nothing is due, a
batch reads only the index (`store.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple, Protocol

import polars as pl

from slackwater.base.errors import fault
from slackwater.base.times import MAX_MS
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import pack, unpack
from slackwater.operators.state.store import Store

MOST_BYTES: Final = 4 << 20
"""The size limit of a piece: Spark's state calls slow down sharply above a few megabytes."""
COMPACT_AT: Final = 16
"""The number of pieces of one tier that are merged into one of the next."""
INBOX: Final = -1
"""The bucket number of rows that have not yet been moved to their bucket."""
_GROWTH: Final = 4
"""Rewritten rows are split by `__end` into pieces of about 1, 4, 16, … distinct times, soonest first."""


Describe = Callable[[pl.DataFrame], dict[str, Any]]
"""Returns the fields of a piece's index entry, computed from its rows."""


class StateLayout(Protocol):
    """The layout of the rows of a step's state."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""

    @property
    def state_types(self) -> pl.Schema:
        """The types of all columns."""

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly these columns; missing ones get their initial value."""


@dataclass
class Piece:
    """The index entry of one piece."""

    seq: int
    rows: int
    bytes: int
    min_end_ms: int
    max_end_ms: int
    wake_ms: int
    """The watermark at which one of its rows must be processed."""
    due_ms: int = MAX_MS
    """The processing time at which one of its rows may fire a pane."""
    tier: int = 0
    is_settled: bool = False
    """Whether all its rows have been emitted, so that they can only be forgotten or corrected."""
    bucket: int = INBOX
    """The bucket of its rows, for state by key; see `buckets`."""
    part: int = 0
    """The kind of its rows, for a step that stores several kinds."""
    crc: int = 0
    """The checksum of its blob."""

    def wakes(self, time: StepTime) -> bool:
        """Return whether one of its rows is due: to fire a pane, or to be forgotten."""
        moved = time.watermark_ms > time.previous_ms
        return not self.is_settled and ((moved and self.wake_ms <= time.watermark_ms) or self.due_ms <= time.now_ms)


_FACTS: Final = tuple(each.name for each in fields(Piece))


class Savepoint(NamedTuple):
    """The pieces of a step at some moment of a batch, to roll back to."""

    pieces: tuple[Piece, ...]
    next_seq: int
    buckets: int
    is_changed: bool
    removed: int
    chunks: tuple[int, int, int]
    """Their number, rows and bytes."""


@dataclass
class StepState:
    """The pieces of one step in one key group, during one batch.

    New blobs are stored at once, under new names; blobs that are dropped are removed by `commit`, at the end. So the
    step can be rolled back at any moment without holding blobs in memory.
    """

    step: str
    store: Store
    pieces: list[Piece] = field(default_factory=list)
    next_seq: int = 0
    buckets: int = 1
    """The number of buckets that the rows are spread over, a power of two; 1 without buckets."""
    is_changed: bool = False
    removed: list[str] = field(default_factory=list)
    """The names of dropped blobs, which `commit` removes."""
    chunks: int = 0
    """The number of chunks: blobs outside the pieces, which rows in pieces refer to by their `seq`."""
    chunk_rows: int = 0
    chunk_bytes: int = 0

    @classmethod
    def from_index(cls, step: str, store: Store, index: dict[str, Any] | None) -> StepState:
        """Open a step's state from its part of the group's index."""
        if index is None:
            return cls(step=step, store=store)
        columns: dict[str, list[Any]] = index["pieces"]
        pieces = [Piece(**dict(zip(columns, entry, strict=True))) for entry in zip(*columns.values(), strict=True)]
        opened = cls(step=step, store=store, pieces=pieces, next_seq=index["next"], buckets=index.get("buckets", 1))
        if chunks := index.get("chunks"):
            opened.chunks, opened.chunk_rows, opened.chunk_bytes = chunks["number"], chunks["rows"], chunks["bytes"]
        return opened

    def to_index(self) -> dict[str, Any]:
        """Return the step's part of the group's index: the facts about its pieces and chunks, by name."""
        pieces = {name: [getattr(piece, name) for piece in self.pieces] for name in _FACTS}
        index = {"next": self.next_seq, "pieces": pieces, "buckets": self.buckets}
        chunks = {"number": self.chunks, "rows": self.chunk_rows, "bytes": self.chunk_bytes}
        return {**index, "chunks": chunks} if self.chunks else index

    @property
    def sizes(self) -> dict[str, int]:
        """The number of pieces and chunks, of their rows, and of their bytes."""
        return {
            "pieces": len(self.pieces) + self.chunks,
            "rows": sum(piece.rows for piece in self.pieces) + self.chunk_rows,
            "bytes": sum(piece.bytes for piece in self.pieces) + self.chunk_bytes,
        }

    def add_chunk(self, rows: pl.DataFrame) -> tuple[int, int, int]:
        """Store rows outside the pieces and the index; return the number to read them by, their size and checksum."""
        blob, seq = pack(rows, self.step), self.next_seq
        self.store.put(f"{self.step}/{seq}", blob)
        self.next_seq += 1
        self.is_changed = True
        self.chunks += 1
        self.chunk_rows += rows.height
        self.chunk_bytes += len(blob)
        return seq, len(blob), zlib.crc32(blob)

    def read_chunk(self, seq: int, *, size: int, crc: int) -> pl.DataFrame:
        """Return the rows of a chunk."""
        return unpack(self._blob(f"chunk {seq}", seq, size, crc), self.step)

    def drop_chunk(self, seq: int, *, rows: int, size: int) -> None:
        """Remove a chunk of `rows` rows and `size` bytes, without reading it."""
        self.removed.append(f"{self.step}/{seq}")
        self.is_changed = True
        self.chunks -= 1
        self.chunk_rows -= rows
        self.chunk_bytes -= size

    def take_rows(self, pieces: Iterable[Piece], layout: StateLayout) -> pl.DataFrame:
        """Remove `pieces` and return their rows as one frame, in the order they were stored."""
        frames = [layout.conform(frame) for frame in self.take(pieces)]
        return pl.concat(frames) if frames else pl.DataFrame(schema=layout.state_types)

    def append_blob(self, blob: bytes, **facts: Any) -> None:  # noqa: ANN401  a Piece's own fields
        """Store a piece that is already packed."""
        self.store.put(f"{self.step}/{self.next_seq}", blob)
        self.pieces.append(Piece(seq=self.next_seq, bytes=len(blob), crc=zlib.crc32(blob), **facts))
        self.next_seq += 1
        self.is_changed = True

    def append_packets(self, packets: Iterable[Packet]) -> None:
        """Store packets unread, each as a piece that wakes at its smallest `__end`."""
        for packet in packets:
            facts = {"min_end_ms": packet.min_end_ms, "max_end_ms": packet.max_end_ms, "wake_ms": packet.min_end_ms}
            self.append_blob(packet.payload or b"", rows=packet.rows, **facts)

    def take(self, pieces: Iterable[Piece]) -> list[pl.DataFrame]:
        """Remove `pieces` and return their frames, oldest first."""
        taken = list(pieces)
        frames = self.read(taken)
        self.drop(taken)
        return frames

    def read(self, pieces: Iterable[Piece]) -> list[pl.DataFrame]:
        """Return the frames of `pieces`, oldest first, without removing them."""
        taken = sorted(pieces, key=lambda piece: piece.seq)
        return [unpack(self._blob(f"piece {each.seq}", each.seq, each.bytes, each.crc), self.step) for each in taken]

    def _blob(self, what: str, seq: int, size: int, crc: int) -> bytes:
        blob = self.store.get(f"{self.step}/{seq}")
        # The index and the blobs are written in one batch, so one without the other is damage.
        if blob is None or (len(blob), zlib.crc32(blob)) != (size, crc):
            why = "it is missing" if blob is None else "its content is not what was stored"
            raise fault("STATE_DAMAGED", what=f"{what} of step `{self.step}`", why=why)
        return blob

    def drop(self, pieces: Iterable[Piece]) -> None:
        """Remove `pieces` without reading them."""
        gone = {piece.seq for piece in pieces}
        self.removed += [f"{self.step}/{seq}" for seq in sorted(gone)]
        self.pieces = [piece for piece in self.pieces if piece.seq not in gone]
        self.is_changed = self.is_changed or bool(gone)

    def savepoint(self) -> Savepoint:
        """Return what `roll_back` returns to."""
        return Savepoint(
            pieces=tuple(self.pieces),
            next_seq=self.next_seq,
            buckets=self.buckets,
            is_changed=self.is_changed,
            removed=len(self.removed),
            chunks=(self.chunks, self.chunk_rows, self.chunk_bytes),
        )

    def roll_back(self, to: Savepoint) -> None:
        """Undo everything since a savepoint."""
        for seq in range(to.next_seq, self.next_seq):
            self.store.remove(f"{self.step}/{seq}")
        self.pieces, self.next_seq, self.buckets = list(to.pieces), to.next_seq, to.buckets
        self.is_changed = to.is_changed
        self.chunks, self.chunk_rows, self.chunk_bytes = to.chunks
        del self.removed[to.removed :]

    def commit(self) -> None:
        """Remove the blobs that were dropped."""
        for name in self.removed:
            self.store.remove(name)
        self.removed = []

    def append(self, rows: pl.DataFrame, describe: Describe, tier: int = 0) -> None:
        """Store `rows`, split by `__end` so that rows that are due sooner are in smaller pieces."""
        if rows.is_empty():
            return
        if rows["__end"].min() == rows["__end"].max():
            self.append_whole(rows, describe, tier)
            return
        rank = pl.col("__end").rank("dense")
        slices = rows.with_columns(rank.log(_GROWTH).floor().cast(pl.Int32).alias("__slice"))
        for part in slices.partition_by("__slice", include_key=False, maintain_order=True):
            self.append_whole(part, describe, tier)

    def append_whole(self, rows: pl.DataFrame, describe: Describe, tier: int = 0) -> None:
        """Store `rows` as one piece, or as several if they are too large for one."""
        blob = pack(rows, self.step)
        if len(blob) > MOST_BYTES and rows.height > 1:
            half = rows.height // 2
            self.append_whole(rows[:half], describe, tier)
            self.append_whole(rows[half:], describe, tier)
            return
        self.append_blob(blob, rows=rows.height, tier=tier, **describe(rows))

    def wakes(self, time: StepTime) -> bool:
        """Return whether anything is due: to be emitted, or to be forgotten."""
        if time.keeps_too_much and self.pieces:
            return True  # the index entries were computed for a longer lateness
        return any(piece.wakes(time) for piece in self.pieces)

    def crowded(self, stagger: int) -> list[Piece]:
        """Return pieces to be merged into one, if there are too many; `stagger` spreads the work over batches."""
        by_tier: dict[tuple[int, bool], list[Piece]] = {}
        for piece in self.pieces:
            if piece.bytes > MOST_BYTES // 2:
                continue  # large enough: merging it would only copy it
            by_tier.setdefault((piece.tier, piece.is_settled), []).append(piece)
        for (tier, _), pieces in sorted(by_tier.items()):
            if len(pieces) >= COMPACT_AT + (stagger % 4 if tier == 0 else 0):
                return pieces
        return []
