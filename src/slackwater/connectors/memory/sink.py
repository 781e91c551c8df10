"""Memory: rows kept in the driver's process, for tests and notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from slackwater.connectors.sink import EVERYTHING, Change, Delivery, Mark, Sink, SinkBatch, SinkWriter, Slot


@dataclass(kw_only=True)
class _Kept(SinkWriter):
    batches: dict[tuple[str, int], pl.DataFrame] = field(default_factory=dict)
    schema: pl.Schema | None = None

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Keep the batch's rows; a replayed batch overwrites itself."""
        assert mark is not None, "the sink promises exactly once"
        frames = [pl.DataFrame(schema=batch.schema), *batch.frames()]
        self.batches[mark.incarnation, batch.batch] = pl.concat(frames)


@dataclass(frozen=True, kw_only=True, eq=False)
class MemorySink(Sink):
    """Rows kept in memory; read them with `rows()`."""

    takes: frozenset[Change] = EVERYTHING
    delivery: Delivery = "exactly_once"
    keeps_marks: bool = False
    kept: _Kept = field(default_factory=_Kept)

    def open(self, slot: Slot) -> SinkWriter:
        """Return the writer with the rows kept so far; only the schema is new."""
        self.kept.schema = slot.schema
        return self.kept

    def rows(self) -> pl.DataFrame:
        """Return all rows so far, in the order of their batches."""
        frames = [frame for _, frame in sorted(self.kept.batches.items())]
        return pl.concat([pl.DataFrame(schema=self.kept.schema), *frames])

    def batch(self, number: int) -> pl.DataFrame:
        """Return the rows of one batch."""
        frames = [frame for (_, batch), frame in self.kept.batches.items() if batch == number]
        return pl.concat([pl.DataFrame(schema=self.kept.schema), *frames])

    def __str__(self) -> str:
        return "memory"

    def __reduce__(self) -> tuple[type[MemorySink], tuple[()]]:
        return (MemorySink, ())


def memory() -> MemorySink:
    """Return a sink that keeps its rows in memory; read them with its method `rows`."""
    return MemorySink()
