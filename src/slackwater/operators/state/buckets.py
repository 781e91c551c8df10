"""Buckets: state by key, so that a batch reads only what it touches or wakes, not a key group's entire state.

Keys are hashed onto buckets, whose number grows with the state. Within a bucket, rows that must be processed soon are
in small pieces, the others in large ones. New rows wait in the inbox, which all buckets share:

1. `put_aside` adds packets to the inbox, unread.
2. `woken` takes the rows that are due: the whole bucket if rows wait for it in the inbox or an inbox row wakes it,
   otherwise only the pieces that wake, or on request the whole bucket as well.
3. `touched` takes the whole buckets of the given rows, and the inbox rows that wait for them.
4. `store` puts rows back into their buckets.

So the rows of one key are available together, except for those that neither changed nor woke. Rows are taken in
portions of whole buckets, and each portion is stored before the next is read: a worker holds one portion in memory,
not everything that a batch touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.base.stable_hash import hash_columns
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.pieces import COMPACT_AT, INBOX, Describe, Piece, StateLayout, StepState

BUCKET_BYTES: Final = 16 << 10
"""The target size of a bucket; when buckets average more than twice this, their number is increased."""
_MOST_BUCKETS: Final = 1 << 12
PORTION_BYTES: Final = 1 << 20
"""The packed size of a portion; a portion has at least one bucket."""
INBOX_BYTES: Final = (64 << 10, 1 << 20)
"""The bounds of the inbox's size limit, which is a quarter of the size of the buckets."""
SOON: Final = 64
"""The number of distinct wake times in a bucket's first piece; each further piece has four times as many."""
_SHIFT: Final = np.uint64(40)
"""Discards the lower bits of a key's hash, which determine its key group."""


@dataclass(frozen=True, kw_only=True)
class Portion:
    """The rows taken from some of the buckets."""

    rows: pl.DataFrame
    numbers: frozenset[int] | None
    """The buckets of the portion, numbered among `buckets`; None if it is the only portion."""
    buckets: int
    keys: tuple[str, ...]

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of `frame` that belong to these buckets, in their original order."""
        if self.numbers is None:
            return frame
        return frame.filter(bucket_of(frame, self.keys, self.buckets).is_in(list(self.numbers)))


class Buckets:
    """The buckets of one step in one key group, during one batch."""

    def __init__(self, state: StepState, layout: StateLayout) -> None:
        self.state = state
        self.layout = layout

    def put_aside(self, packets: list[Packet]) -> None:
        """Add packed rows to the inbox."""
        self.state.append_packets(packets)

    @property
    def is_inbox_full(self) -> bool:
        """Whether the rows of the inbox should be moved to their buckets."""
        waiting = self._inbox_pieces()
        size = sum(piece.bytes for piece in waiting)
        least, most = INBOX_BYTES
        limit = min(max(least, (self._bytes() - size) // 4), most)
        return len(waiting) >= COMPACT_AT or size > limit

    def woken(self, time: StepTime, *, whole: bool = False) -> Iterator[pl.DataFrame]:
        """Take the rows that are due, with all rows of their keys where rows wait in the inbox.

        With `whole`, always take all rows of their keys.
        """
        if time.keeps_too_much:
            yield from self.everything()
            return
        inbox = self._inbox()
        awake = {piece.bucket for piece in self.state.pieces if piece.wakes(time)} - {INBOX}
        roused = {*inbox.filter(pl.col("__end") <= time.watermark_ms)["__bucket"].unique()}
        waiting, rest = _split(inbox, awake | roused)
        self._put_back(rest)
        numbers, before = awake | roused, self.state.buckets
        entire = numbers if whole else roused | {*waiting["__bucket"].unique()}
        for portion in self._portions(
            numbers, waiting, lambda piece: piece.bucket % before in entire or piece.wakes(time)
        ):
            yield portion.rows

    def touched(self, *frames: pl.DataFrame | None) -> Iterator[Portion]:
        """Take all rows of the buckets that the rows of `frames` belong to."""
        numbers = self._buckets_of(frames)
        waiting, rest = _split(self._inbox(), numbers)
        self._put_back(rest)
        yield from self._portions(numbers, waiting)

    def everything_near(self, *frames: pl.DataFrame | None) -> Iterator[Portion]:
        """Take the inbox, and all rows of the buckets that its rows and those of `frames` belong to."""
        inbox = self._inbox()
        yield from self._portions(self._buckets_of(frames) | {*inbox["__bucket"].unique()}, inbox)

    def everything(self) -> Iterator[pl.DataFrame]:
        """Take all rows."""
        inbox = self._inbox()
        numbers = {piece.bucket for piece in self.state.pieces} | {*inbox["__bucket"].unique()}
        yield from (portion.rows for portion in self._portions(numbers, inbox))

    def store(self, rows: pl.DataFrame, wake: pl.Expr, describe: Describe) -> None:
        """Put rows into their buckets, laid out by `wake`, the watermark at which a row must be processed."""
        if rows.is_empty():
            return
        size = int(rows.estimated_size()) // 2 + self._bytes()  # packing roughly halves the size
        if self.state.buckets < _MOST_BUCKETS and size > 2 * BUCKET_BYTES * self.state.buckets:
            chunks = self._chunks({piece.bucket for piece in self.state.pieces} - {INBOX})
            self.state.buckets = min(1 << (size // BUCKET_BYTES).bit_length(), _MOST_BUCKETS)
            for numbers in chunks:
                taken = self._rows([piece for piece in self.state.pieces if piece.bucket in numbers])
                self._lay_out(taken, wake, describe)
        self._lay_out(rows, wake, describe)

    def _lay_out(self, rows: pl.DataFrame, wake: pl.Expr, describe: Describe) -> None:
        numbered = rows.with_columns(self._numbers(rows), wake.alias("__wake"))
        soon = pl.col("__wake").rank("dense").over("__bucket")
        piece = ((soon - 1) // SOON + 1).log(4).floor().cast(pl.Int32).alias("__piece")
        parts = numbered.with_columns(piece).partition_by(["__bucket", "__piece"], as_dict=True, maintain_order=True)
        for (number, _), part in parts.items():
            stored = part.drop("__bucket", "__wake", "__piece")
            self.state.append_whole(stored, _in_bucket(describe, int(number)))

    def _portions(
        self, numbers: set[int], waiting: pl.DataFrame, is_taken: Callable[[Piece], bool] = lambda _: True
    ) -> Iterator[Portion]:
        """Take some buckets, portion by portion: their stored rows, followed by those that were waiting."""
        # Storing a portion may increase the number of buckets; a bucket's successors have its number modulo `before`.
        before, chunks = self.state.buckets, self._chunks(numbers)
        for chunk in chunks:
            pieces = [piece for piece in self.state.pieces if piece.bucket != INBOX and piece.bucket % before in chunk]
            stored = self._rows([piece for piece in pieces if is_taken(piece)])
            mine = waiting if len(chunks) == 1 else waiting.filter(pl.col("__bucket").is_in(list(chunk)))
            yield Portion(
                rows=pl.concat([stored, mine.drop("__bucket")]),
                numbers=None if len(chunks) == 1 else chunk,
                buckets=before,
                keys=self.layout.keys,
            )

    def _chunks(self, numbers: set[int]) -> list[frozenset[int]]:
        """Split the numbers of buckets into portions."""
        sizes = Counter[int]()
        for piece in self.state.pieces:
            sizes[piece.bucket] += piece.bytes
        chunks: list[set[int]] = []
        size = 0
        for number in sorted(numbers):
            size += sizes[number]
            if not chunks or size > PORTION_BYTES:
                chunks.append(set())
                size = sizes[number]
            chunks[-1].add(number)
        return [frozenset(chunk) for chunk in chunks]

    def _buckets_of(self, frames: Iterable[pl.DataFrame | None]) -> set[int]:
        return {number for frame in frames if frame is not None for number in self._numbers(frame).unique()}

    def _numbers(self, rows: pl.DataFrame) -> pl.Series:
        return bucket_of(rows, self.layout.keys, self.state.buckets)

    def _bytes(self) -> int:
        return sum(piece.bytes for piece in self.state.pieces)

    def _rows(self, pieces: Collection[Piece]) -> pl.DataFrame:
        return self.state.take_rows(pieces, self.layout)

    def _inbox_pieces(self) -> list[Piece]:
        return [piece for piece in self.state.pieces if piece.bucket == INBOX]

    def _inbox(self) -> pl.DataFrame:
        """Take the rows of the inbox, each with the number of its bucket."""
        rows = self._rows(self._inbox_pieces())
        return rows.with_columns(self._numbers(rows))

    def _put_back(self, rows: pl.DataFrame) -> None:
        if rows.height:
            self.state.append_whole(rows.drop("__bucket"), _in_inbox)


def bucket_of(rows: pl.DataFrame, keys: tuple[str, ...], buckets: int) -> pl.Series:
    """Return the bucket of each row's key, among `buckets` buckets."""
    hashes = hash_columns(rows, list(keys)) >> _SHIFT
    return pl.Series("__bucket", (hashes % np.uint64(buckets)).astype(np.int32))


def _split(rows: pl.DataFrame, numbers: Collection[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    chosen = rows["__bucket"].is_in(list(numbers))
    return rows.filter(chosen), rows.filter(~chosen)


def _in_bucket(describe: Describe, number: int) -> Describe:
    return lambda rows: {**describe(rows), "bucket": number}


def _in_inbox(rows: pl.DataFrame) -> dict[str, Any]:
    first, last = rows["__end"].min(), rows["__end"].max()
    return {"min_end_ms": first, "max_end_ms": last, "wake_ms": first, "bucket": INBOX}
