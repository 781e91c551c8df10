"""OUTPUTS: an evaluated batch, unpacked per output for its sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

from slackwater.connectors.sink import SinkBatch
from slackwater.engine.batch_stats import BatchStats
from slackwater.formats.schemas import to_arrow, to_spark_ddl
from slackwater.operators.state.packing import unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INLINE_BYTES: Final = 1 << 20
"""Packets up to this size reach the driver with the batch's statistics; larger ones stay on the executors."""
PARALLEL_BYTES: Final = 64 << 20
"""An output larger than this is written by the executors in parallel, if its sink supports it."""
_OF_THE_BATCH: Final = "kind IN ('output', 'stats')"
_HOME: Final = (
    # As text: built call by call from PySpark functions, the same expressions cost tens of milliseconds per batch.
    "kind",
    "target",
    "order",
    "rows",
    "length(payload) AS size",
    f"CASE WHEN kind = 'stats' OR length(payload) <= {INLINE_BYTES} THEN payload END AS payload",
)
_PART: Final = pa.schema([("part", pa.int32())])


@dataclass(kw_only=True)
class EvaluatedBatch:
    """A batch whose partitions have all been evaluated, exactly once; its packets are cached until `release`.

    Every partition must be evaluated before the first sink is called: if the callback returned without evaluating one,
    Spark would commit the batch, and that partition's state would be lost for good.
    """

    number: int
    stats: BatchStats
    frame: DataFrame
    small: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    """Outputs with packets that stayed on the executors."""

    @classmethod
    def evaluate(cls, frame: DataFrame, number: int) -> EvaluatedBatch:
        """Evaluate every partition in one Spark job, which returns the statistics and the small packets."""
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        batch = cls(number=number, stats=BatchStats(), frame=frame)
        try:
            table = frame.where(_OF_THE_BATCH).selectExpr(*_HOME).toArrow()
        except BaseException:
            batch.release()
            raise
        batch._sort(table)
        return batch

    def _sort(self, table: pa.Table) -> None:
        stats = []
        for packet in table.to_pylist():
            if packet["kind"] == "stats":
                stats.append(packet["payload"])
                continue
            name = packet["target"]
            self.rows[name] = self.rows.get(name, 0) + packet["rows"]
            self.bytes[name] = self.bytes.get(name, 0) + packet["size"]
            if packet["payload"] is None:
                self.large.add(name)
            else:
                self.small.setdefault(name, []).append((packet["order"], packet["payload"]))
        self.stats = BatchStats.merged(stats)

    def is_large(self, name: str) -> bool:
        """Return whether the executors should write an output, rather than the driver in one go."""
        return name in self.large or self.bytes.get(name, 0) > PARALLEL_BYTES

    def sink_batch(self, name: str, schema: pl.Schema) -> SinkBatch:
        """Return the rows of one output as a batch for its sinks."""
        return SinkBatch(
            batch=self.number,
            schema=schema,
            rows=self.rows.get(name, 0),
            frames=lambda: self._frames(name),
            in_parallel=(lambda write: self.in_parallel(name, schema, write)) if self.is_large(name) else None,
            spark_frame=lambda: self._packets(name).mapInArrow(
                unpack_rows(name, to_arrow(schema)), to_spark_ddl(schema)
            ),
        )

    def release(self) -> None:
        """Release the cached packets."""
        self.frame.unpersist()

    def _packets(self, name: str) -> DataFrame:
        wanted = (F.col("kind") == "output") & (F.col("target") == name)
        return self.frame.where(wanted).select("order", "rows", "payload")

    def _in_order(self, name: str) -> DataFrame:
        """Return the packets of an output in an order that a replay repeats."""
        return self._packets(name).sortWithinPartitions("order", "payload")

    def _frames(self, name: str) -> Iterator[pl.DataFrame]:
        packets: Any = self.small.get(name, [])
        if name in self.large:
            packets = ((row["order"], bytes(row["payload"])) for row in self._in_order(name).toLocalIterator())
        else:
            packets = sorted(packets)
        for _, payload in packets:
            yield unpack(payload, name)

    def in_parallel(self, name: str, schema: pl.Schema, write: Callable[[int, SinkBatch], None]) -> list[int]:
        """Run `write` on the executors over each part of an output that has rows; return the parts' numbers.

        A row belongs to the part of its key group, so a replayed batch has the same parts.
        """
        number = self.number

        def part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            packets = sorted(
                (tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=itemgetter(0, 2)
            )
            if packets:
                rows = SinkBatch(
                    batch=number,
                    schema=schema,
                    rows=sum(count for _, count, _ in packets),
                    frames=lambda: (unpack(payload, name) for _, _, payload in packets),
                )
                write(context.partitionId(), rows)
                yield pa.RecordBatch.from_pydict({"part": [context.partitionId()]}, schema=_PART)

        return sorted(row["part"] for row in self._packets(name).mapInArrow(part, "part int").collect())


def unpack_rows(target: str, schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that unpacks one output's packets into rows with types that Spark accepts."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column("payload"):
                table = unpack(payload.as_py(), target).to_arrow(compat_level=pl.CompatLevel.oldest())
                yield from table.cast(schema).to_batches()

    return run
