"""A batch's rows as requests: JSON bodies, idempotency keys that a replay reproduces, and lanes that keep the order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from slackwater.base.stable_hash import hash_columns
from slackwater.connectors.sink import SinkBatch, Slot
from slackwater.formats.row_json import json_objects

LANES: Final = 64
"""Rows are spread over this many lanes at any concurrency, so that changing it changes no request."""
_SEEN: Final = pl.Schema({"hash": pl.UInt64(), "count": pl.UInt32()})


@dataclass(frozen=True, slots=True)
class Request:
    """One row, or several, to be sent in one request."""

    key: str
    bodies: tuple[str, ...]
    """A JSON object for each row."""
    numbers: tuple[int, ...]
    """The rows' positions in the batch."""
    is_array: bool

    @property
    def body(self) -> bytes:
        """The body of the request."""
        return (f"[{','.join(self.bodies)}]" if self.is_array else self.bodies[0]).encode()


@dataclass(kw_only=True)
class Requests:
    """The requests of one batch, frame by frame.

    A result with an identity is identified by its content, so its key is a hash of the row: pipeline, output and all
    columns except those that depend on how rows were split into batches. Any other row may occur twice and mean two
    things, so its key also includes its position: run, batch, slot and number.
    """

    slot: Slot
    run: str
    batch: int
    key: tuple[str, ...]
    batch_rows: int
    _number: int = 0
    _seen: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_SEEN))

    def lanes(self, batch: SinkBatch) -> Iterator[list[list[Request]]]:
        """Yield the requests of each frame in lanes; those in one lane must be sent one after another."""
        for frame in batch.frames():
            if frame.height:
                yield self._lanes(frame)

    def _lanes(self, frame: pl.DataFrame) -> list[list[Request]]:
        bodies = json_objects(frame).to_list()
        keys = self._keys(frame, bodies)
        first, self._number = self._number, self._number + frame.height
        lanes: list[list[Request]] = [[] for _ in range(LANES)]
        for place, rows in enumerate(self._groups(frame)):
            for start in range(0, len(rows), self.batch_rows):
                taken = rows[start : start + self.batch_rows].tolist()
                key = keys[taken[0]] if self.batch_rows == 1 else _digest(*(keys[row] for row in taken))
                texts, numbers = tuple(bodies[row] for row in taken), tuple(first + row for row in taken)
                lanes[place % LANES].append(Request(key, texts, numbers, self.batch_rows > 1))
        return lanes

    def _groups(self, frame: pl.DataFrame) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
        """Return the row numbers that stay together: those of one lane by key, or the next few."""
        if not self.key:
            return np.array_split(np.arange(frame.height), range(self.batch_rows, frame.height, self.batch_rows))
        lane = hash_columns(frame, list(self.key)) % np.uint64(LANES)
        order = np.argsort(lane, kind="stable")
        return np.split(order, np.searchsorted(lane[order], np.arange(1, LANES, dtype=np.uint64)))

    def _keys(self, frame: pl.DataFrame, bodies: list[str]) -> list[str]:
        place = f"{self.slot.pipeline}\n{self.slot.output}"
        identity = self.slot.identity
        if self.key and identity is not None and identity.is_in(frame.columns):
            results = json_objects(frame.select(pl.exclude(identity.incidental)))
            pairs = zip(results, self._occurrences(results), strict=True)
            return [_digest(place, result, str(nth)) for result, nth in pairs]
        place = f"{place}\n{self.run}\n{self.batch}\n{self.slot.number}"
        return [_digest(place, str(self._number + row), body) for row, body in enumerate(bodies)]

    def _occurrences(self, rows: pl.Series) -> pl.Series:
        """Return how often each row occurred earlier in the batch: equal rows still count separately."""
        here = pl.DataFrame({"hash": rows.hash()})
        before = here.join(self._seen, on="hash", how="left", maintain_order="left")
        counts = here.group_by("hash").len("count")
        self._seen = pl.concat([self._seen, counts]).group_by("hash").agg(pl.col("count").sum())
        return before.select(pl.col("count").fill_null(0) + pl.int_range(pl.len()).over("hash")).to_series()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
