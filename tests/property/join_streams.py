"""Made-up pairs of streams for the property tests of joins: out of order, late, without keys, in any batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol
from unittest import mock

import polars as pl
from hypothesis import strategies as st

import slackwater as sw
from slackwater.operators.joins import kept_rows
from slackwater.plan.streams import Output, Results, Stream
from slackwater.testing import Harness, rows_source

T0: Final = 1_700_000_000_000
OUT_OF_ORDERNESS_MS: Final = 10
Side = Literal["left", "right"]


@dataclass(frozen=True)
class Row:
    """One row of one side; `watermark_ms` is set when it is sent."""

    id: int
    side: Side
    key: str | None
    ts_ms: int
    x: int
    partition: str


@dataclass(frozen=True)
class Batch:
    """The rows of one micro-batch, and whether the job restarted before it."""

    rows: tuple[Row, ...]
    restart: bool = False


@dataclass(frozen=True)
class Arrival:
    """A row, and the watermark in force when it came."""

    row: Row
    watermark_ms: int
    batch: int


@dataclass
class Joined:
    """Two streams that went through a join to their end."""

    harness: Harness
    arrivals: list[Arrival]
    results: pl.DataFrame
    counts: Counter[str]


def source(side: Side) -> Stream:
    """Return the stream of one side."""
    rows = rows_source("id long, key string, ts long, x long")
    return sw.stream(side, rows).event_time("ts", out_of_orderness=f"{OUT_OF_ORDERNESS_MS}ms")


def pipeline(results: Results, *more: Stream | Output, has_late: bool = True, key_groups: int = 16) -> sw.Pipeline:
    """Return a pipeline in which everything ends in memory."""
    sides = {keyed.stream.name: keyed.stream for keyed in results.origin.inputs.values()}  # type: ignore[union-attr]  # results come from a step
    ends = [results, *([results.late] if has_late else []), *more]
    letters = [side.dead_letters for side in sides.values() if side.name in ("left", "right")]
    return sw.Pipeline("joined", *(end.to(sw.sinks.memory()) for end in [*ends, *letters]), key_groups=key_groups)


def send(harness: Harness, batch: Batch) -> None:
    """Put a batch's rows into their sources, each partition's in order."""
    places = sorted({(row.side, row.partition) for row in batch.rows})
    for side, partition in places:
        if side in harness.watermark:
            rows = [row for row in batch.rows if (row.side, row.partition) == (side, partition)]
            records = [{"id": row.id, "key": row.key, "ts": row.ts_ms, "x": row.x} for row in rows]
            harness.send(side, records, partition=partition)


def joined(ended: sw.Pipeline, results: Results, batches: list[Batch]) -> Joined:
    """Send `batches` through a join, to the end."""
    harness, arrivals = Harness(ended, now=T0), list[Arrival]()
    counts: Counter[str] = Counter()
    for number, batch in enumerate(batches):
        if batch.restart:
            harness.restart()
        watermark_ms = min(harness.watermark.values())
        arrivals += [Arrival(row, watermark_ms, number) for row in batch.rows]
        send(harness, batch)
        harness.run_batch()
        counts.update(harness.last.counts.get(results.name, {}))
    harness.run_batch()
    counts.update(harness.last.counts.get(results.name, {}))
    # The first of the two batches at the end has no rows and no other clock, so the last one counts.
    harness.finish()
    counts.update(harness.last.counts.get(results.name, {}))
    return Joined(harness, arrivals, harness.output(results), counts)


@st.composite
def batches(draw: st.DrawFn, *, most: int = 9, sides: tuple[Side, ...] = ("left", "right")) -> list[Batch]:
    """Draw two streams, cut into batches; event time moves on with the batches, with rows far behind it."""
    drawn, next_id = [], 0
    for number in range(draw(st.integers(1, most))):
        rows = []
        for _ in range(draw(st.integers(0, 6))):
            ts_ms = T0 + 20 * number - draw(st.integers(0, 25) | st.integers(0, 120))
            key = draw(st.sampled_from(["a", "a", "b", "c", None]))
            place = draw(st.sampled_from(["0", "0", "1"]))
            rows.append(Row(next_id, draw(st.sampled_from(sides)), key, ts_ms, draw(st.integers(0, 9)), place))
            next_id += 1
        drawn.append(Batch(tuple(rows), draw(st.integers(0, 4)) == 0))
    return drawn


@contextmanager
def tiny_pieces() -> Iterator[None]:
    """Make pieces merge and split from a few rows on."""
    with mock.patch.multiple(kept_rows, LARGE_BYTES=3_000, COMPACT_AT=2):
        yield


class Join(Protocol):
    """A join of two streams, drawn by a test."""

    def pipeline(self) -> tuple[sw.Pipeline, Results]:
        """Return the pipeline and the results of the join, which has the name `joined`."""


def run(join: Join, stream: list[Batch]) -> Joined:
    """Send a stream through a join, to the end; its state is in tiny pieces."""
    ended, results = join.pipeline()
    with tiny_pieces():
        return joined(ended, results, stream)
