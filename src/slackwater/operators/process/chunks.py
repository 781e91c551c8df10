"""Chunks: the entries of a large cell, stored apart from its key, so that a call costs what it touches.

The entries of a list, set or map, and the timers of a key, are in the state row of the key while they are few. More of
them are spread over chunks, the leaves of a tree with one level: each covers a range of places, and the state row has
the directory of the chunks. An entry's place is its number in a list, a hash in a set or map, and the time of a timer.

1. A state row is loaded with the directory alone.
2. The chunk of a place is read when the user's code reaches for it, and all of them when it reads everything.
3. When the key is stored, chunks whose entries have changed are rewritten, and split or joined; those whose entries
   have all expired are dropped unread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from slackwater.base.times import EPOCH
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.operators.process.migration import conformed
from slackwater.operators.state.pieces import StepState

INLINE_ROWS: Final = 512
"""The number of entries up to which a cell is stored in the row of its key."""
CHUNK_ROWS: Final = 512
"""The most entries of a chunk; when there are more, it is split."""
CHUNK_BYTES: Final = 128 << 10
"""The size above which a chunk is split, too, if it has several entries."""
APART: Final = "__apart"
"""The column with the directory of a key's chunks; null for nearly all keys."""
Row = tuple[Any, ...]


class EntryChunk(NamedTuple):
    """The directory's entry of one chunk."""

    of: str
    """The cell it belongs to."""
    lo: int
    """Its first place; the next chunk begins where it ends."""
    seq: int
    rows: int
    bytes: int
    crc: int
    """Its checksum."""
    oldest: int
    newest: int
    """The bounds of its entries' `at`: when they were written, or when timers fire."""
    last: int
    """The largest number of an entry, which gives entries their order."""


CHUNK: Final = pl.Struct({name: pl.String() if name == "of" else pl.Int64() for name in EntryChunk._fields})


class Tree:
    """The chunks of one cell of the current key, some of them read."""

    def __init__(
        self,
        state: StepState,
        of: str,
        types: dict[str, pl.DataType],
        place: Callable[[Row], int],
        chunks: Iterable[EntryChunk] = (),
        *,
        gone_ms: int | None = None,
    ) -> None:
        self._state, self._of, self._types, self._place = state, of, pl.Schema(types), place
        self._gone_ms = gone_ms
        self._list(sorted(chunks, key=lambda chunk: chunk.lo))
        self._unread = {chunk.seq for chunk in self.chunks}
        self._changed: set[int] = set()

    def _list(self, chunks: list[EntryChunk]) -> None:
        self.chunks = chunks
        self._los = [chunk.lo for chunk in chunks]

    def _at(self, place: int) -> EntryChunk:
        return self.chunks[max(0, bisect_right(self._los, place) - 1)]

    def read_at(self, place: int) -> list[Row]:
        """Return the entries of the chunk at a place, once; later there are none."""
        return self._taken([self._at(place)])

    def read_before(self, at: int) -> list[Row]:
        """Return the entries of all unread chunks with an entry before a time."""
        return self._taken([chunk for chunk in self.chunks if chunk.oldest < at]) if self._unread else []

    def read_all(self) -> list[Row]:
        """Return the entries of all unread chunks."""
        return self._taken(self.chunks) if self._unread else []

    def is_mixed(self, dead_ms: int) -> bool:
        """Return whether a chunk has entries on both sides of a time."""
        dead_ms = self._dead(dead_ms)
        return any(chunk.oldest < dead_ms <= chunk.newest for chunk in self.chunks)

    def read_mixed(self, dead_ms: int) -> list[Row]:
        """Return the entries of all unread chunks of which some entries, but not all, are older than a time."""
        dead_ms = self._dead(dead_ms)
        return self._taken([chunk for chunk in self.chunks if chunk.oldest < dead_ms <= chunk.newest])

    def count_unread(self, dead_ms: int) -> int:
        """Return the number of entries in unread chunks whose entries are not older than a time."""
        dead_ms = self._dead(dead_ms)
        return sum(chunk.rows for chunk in self.chunks if chunk.seq in self._unread and chunk.oldest >= dead_ms)

    def _dead(self, dead_ms: int) -> int:
        return dead_ms if self._gone_ms is None else max(dead_ms, self._gone_ms)

    def all_rows(self) -> list[Row]:
        """Return all entries as stored."""
        return [row for chunk in self.chunks for row in self._rows(chunk)]

    def _taken(self, chunks: list[EntryChunk]) -> list[Row]:
        rows: list[Row] = []
        for chunk in chunks:
            if chunk.seq in self._unread:
                self._unread.discard(chunk.seq)
                rows += self._rows(chunk)
        return rows

    def _rows(self, chunk: EntryChunk) -> list[Row]:
        frame = conformed(self._state.read_chunk(chunk.seq, size=chunk.bytes, crc=chunk.crc), self._types)
        if self._gone_ms is not None and is_forgotten(chunk.oldest + 1, self._gone_ms):
            frame = frame.filter(~is_forgotten(pl.col("at") + 1, self._gone_ms))
        return frame.rows()

    def change(self, place: int) -> None:
        """Note that an entry at a place, whose chunk was read, has changed."""
        self._changed.add(self._at(place).seq)

    @property
    def rows(self) -> int:
        """The number of entries, as stored."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def next_number(self) -> int:
        """The number for the next entry."""
        return max((chunk.last for chunk in self.chunks), default=-1) + 1

    @property
    def first_ms(self) -> int:
        """The earliest `at` of all entries."""
        return min(chunk.oldest for chunk in self.chunks)

    @property
    def first_over_ms(self) -> int:
        """The time of the newest entry of the chunk that expires first."""
        return min(chunk.newest for chunk in self.chunks)

    @property
    def newest_ms(self) -> int:
        """The latest `at` of all entries."""
        return max(chunk.newest for chunk in self.chunks)

    def store(self, rows: Iterable[Row], dead_ms: int | None = None) -> None:
        """Write the changed chunks, given all entries that were read or added, and drop those that have expired."""
        if not self.chunks:
            self._list(self._written([*rows]))
            return
        changed: dict[int, list[Row]] = {seq: [] for seq in self._changed}
        for row in rows if changed else ():
            if (seq := self._at(self._place(row)).seq) in changed:
                changed[seq].append(row)
        kept: list[EntryChunk] = []
        for chunk in self.chunks:
            if chunk.seq in changed:
                mine, lo = changed[chunk.seq], chunk.lo
                self._drop(chunk)
                if mine and kept and _is_small(kept[-1], len(mine)):
                    neighbour = kept.pop()
                    mine, lo = self._rows(neighbour) + mine, neighbour.lo
                    self._drop(neighbour)
                kept += self._written(mine, lo, is_last=chunk is self.chunks[-1])
            elif dead_ms is not None and chunk.newest < dead_ms:
                self._drop(chunk)
            else:
                kept.append(chunk)
        self._list(kept)
        self._changed.clear()

    def drop_all(self) -> None:
        """Remove all chunks."""
        for chunk in self.chunks:
            self._drop(chunk)
        self._list([])

    def entries(self) -> list[dict[str, Any]]:
        """Return the directory, for the state row of the key."""
        return [chunk._asdict() for chunk in self.chunks]

    def _drop(self, chunk: EntryChunk) -> None:
        self._state.drop_chunk(chunk.seq, rows=chunk.rows, size=chunk.bytes)

    def _written(self, rows: list[Row], lo: int | None = None, *, is_last: bool = False) -> list[EntryChunk]:
        """Write rows as chunks, the first of them from place `lo` on; rows of one place stay together."""
        placed = sorted(((self._place(row), row) for row in rows), key=lambda each: each[0])
        written: list[EntryChunk] = []
        # Behind the last place more may come: chunks before it are full, so that a list has no half-empty ones.
        is_split = CHUNK_ROWS < len(placed) <= 2 * CHUNK_ROWS and not is_last
        size = max(1, CHUNK_ROWS // 2) if is_split else CHUNK_ROWS
        start = 0
        while start < len(placed):
            end = min(start + size, len(placed))
            while end < len(placed) and placed[end][0] == placed[end - 1][0]:
                end += 1
            frame = self._frame([row for _, row in placed[start:end]])
            if frame.estimated_size() > CHUNK_BYTES and size > 1 and placed[start][0] != placed[end - 1][0]:
                size = max(1, min(size, end - start) // 2)
                continue
            written.append(self._add(frame, placed[start][0] if written or lo is None else lo))
            start = end
        return written

    def _add(self, frame: pl.DataFrame, lo: int) -> EntryChunk:
        seq, size, crc = self._state.add_chunk(frame)
        at: Any = frame["at"]
        last: Any = frame["seq"].max() if "seq" in frame.columns else 0
        facts = {"rows": frame.height, "bytes": size, "crc": crc, "oldest": at.min(), "newest": at.max(), "last": last}
        return EntryChunk(of=self._of, lo=lo, seq=seq, **facts)

    def _frame(self, rows: list[Row]) -> pl.DataFrame:
        columns = zip(self._types.items(), zip(*rows, strict=True), strict=True)
        return pl.DataFrame([pl.Series(name, held, dtype=dtype, strict=True) for (name, dtype), held in columns])


def _is_small(chunk: EntryChunk, more: int) -> bool:
    """Return whether a chunk and its neighbour's entries should be one chunk."""
    return more < CHUNK_ROWS // 4 and chunk.rows + more <= CHUNK_ROWS // 2 and chunk.bytes < CHUNK_BYTES // 4


def place_of(key: Any) -> int:  # noqa: ANN401  the user's own value
    """Return the place of a key of a set or map: equal keys have the same, in every process."""
    if isinstance(key, str):
        return crc32(key.encode(errors="surrogatepass"))
    if isinstance(key, bytes | bytearray | memoryview):
        return crc32(key)
    if isinstance(key, datetime):
        return 0 if key.tzinfo is None else (key - EPOCH) // EPOCH.resolution
    if isinstance(key, int | float | Decimal | np.generic):
        # The hash of a number follows from its value, except that of NaN.
        return hash(key) if key == key else 0  # noqa: PLR0124  false for NaN
    return crc32(repr(key).encode())


def chunks_of(directory: Iterable[dict[str, Any]]) -> dict[str, list[EntryChunk]]:
    """Return the chunks of a key's directory, by cell."""
    found: dict[str, list[EntryChunk]] = {}
    for entry in directory:
        found.setdefault(entry["of"], []).append(EntryChunk(**entry))
    return found
