"""What runs in Spark's Python workers: FRONT as `mapInArrow`, KEYED as a stateful processor."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pandas as pd
import polars as pl
import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from slackwater.clock.clock import Clock
from slackwater.errors import fault
from slackwater.formats.dead_letters import HEADERS
from slackwater.front.front import Chunk, Front
from slackwater.ground.crash_points import crash_point
from slackwater.keyed.stage import Stage
from slackwater.planning.plan import Plan, SourcePlan
from slackwater.sources.kafka.definition import KafkaSource
from slackwater.sources.log.definition import LogSource
from slackwater.sources.log.listing import ListedFile, file_position, named_offset, shown
from slackwater.sources.log.reading import read_chunks
from slackwater.state.key_groups import labels
from slackwater.state.packets import Packet, tick, to_arrow

_WRITTEN_HEADERS: Final = pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))
CLOCK_PROPERTY: Final = "slackwater.clock"
# As types: Spark asks the JVM what a text means, four times a task.
_NAME: Final = StructType([StructField("name", StringType())])
_BLOB: Final = StructType([StructField("blob", BinaryType())])
_MOST_TASKS: Final = 1 << 16
_CHUNK_ROWS: Final = 1_000_000
_CHUNK_BYTES: Final = 128 << 20


@dataclass(frozen=True)
class PlanHandle:
    """A plan on its way to the workers, which unpack it once per process and not once per task."""

    blob: bytes

    @classmethod
    def of(cls, plan: Plan) -> PlanHandle:
        """Pack `plan`; the user's own functions travel with it."""
        return cls(cloudpickle.dumps(plan))  # type: ignore[no-untyped-call]  # has no types

    def load(self) -> Plan:
        """Return the plan."""
        return _unpacked(self.blob)


@lru_cache(maxsize=8)
def _unpacked(blob: bytes) -> Plan:
    plan: Plan = cloudpickle.loads(blob)
    return plan


def task_clock() -> Clock:
    """Return the clock of the batch this task belongs to; there is no sensible default."""
    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    text = context.getLocalProperty(CLOCK_PROPERTY)
    clock = None if text is None else Clock.from_property(text)
    if clock is None or str(clock.batch) != batch:
        raise fault("CLOCK_NOT_HANDED_OVER", batch=batch)
    return clock


Run = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Chunks = Callable[[SourcePlan, Clock, Iterator[pa.RecordBatch]], Iterator[Chunk]]


def front(handle: PlanHandle, stream: str, chunks: Chunks, *, ticks: bool) -> Run:
    """Return FRONT for a stream, as `mapInArrow` runs it; `chunks` makes chunks of what Spark hands over.

    A task that is handed nothing does nothing. Else it is called by its first file in the statistics.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None:
            return
        plan, clock = handle.load(), task_clock()
        [source] = [source for source in plan.sources if source.name == stream]
        working = Front(plan, source, clock)
        crash_point("front", clock.batch)
        task = ""
        # What arrived after a bounded run began is in its final batch, and is left for a later run to read.
        given = () if clock.is_over else itertools.chain([first], batches)
        for chunk in chunks(source, clock, iter(given)):
            task = task or chunk.file
            if packets := working.process(chunk):
                yield to_arrow(packets)
        yield to_arrow([*working.finish(task), *_ticks(plan, wanted=ticks)])

    return run


def log_chunks(source: SourcePlan, _clock: Clock, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the records of the files that a listing names: Spark reads the listing, FRONT the files."""
    assert isinstance(source.source, LogSource)
    files = [ListedFile(**json.loads(str(line))) for batch in batches for line in batch.column(0).to_pylist()]
    for file in sorted(files, key=lambda file: (file.partition, file.number)):
        yield from _file_chunks(source.source, file)


def frame_chunks(source: SourcePlan, clock: Clock, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the rows of a DataFrame.

    They have no place of their own. So they are numbered, behind all rows of the batches before; the tasks of a batch
    take turns.
    """
    schema, context = source.source.schema, TaskContext.get()
    assert schema is not None
    assert context is not None
    task, read = context.partitionId(), clock.streams[source.name].rows
    assert task < _MOST_TASKS, "two tasks would give rows the same place"
    for table in gathered(batches):
        frame = conform(pl.DataFrame(table.rename_columns(schema.names())), schema, source.name)
        stop = read + frame.height
        places = pl.int_range(read, stop, dtype=pl.Int64, eager=True) * _MOST_TASKS + task
        yield Chunk(
            frame=frame,
            partition="",
            file=str(task),
            first_offset=read * _MOST_TASKS + task,
            source=source.name,
            ingestion_ms=clock.now,
            offsets=places,
        )
        read = stop


def kafka_chunks(source: SourcePlan, _clock: Clock, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield records as the connector gives them: of one partition a task, in order."""
    assert isinstance(source.source, KafkaSource)
    for table in gathered(batches):
        yield _kafka_chunk(source.source, pl.DataFrame(table))


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of small batches in large tables: the more rows FRONT sees at once, the more it combines."""
    pieces: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        pieces.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield pa.Table.from_batches(pieces)
            pieces, rows, size = [], 0, 0
    if pieces:
        yield pa.Table.from_batches(pieces)


def _file_chunks(source: LogSource, file: ListedFile) -> Iterator[Chunk]:
    path, name = file.place, shown(file.place)
    base, named = file_position(file.number), named_offset(path)
    columns = None if source.schema is None else source.schema.names()
    facts: dict[str, Any] = {"length": file.length, "modified_ms": file.modified_ms}
    for piece in read_chunks(path, **facts, kind=source.format, columns=columns):
        frame = piece.frame if source.schema is None else conform(piece.frame, source.schema, name)
        if base + piece.first_line + frame.height > file_position(file.number + 1):
            raise fault("LOG_FILE_UNREADABLE", path=name, cause="it has more than 4 billion records")
        yield Chunk(
            frame=frame,
            partition=file.partition,
            file=name,
            first_offset=base + piece.first_line,
            shown_offset=None if named is None else named + piece.first_line,
            source=name,
            ingestion_ms=file.modified_ms,
        )


def _kafka_chunk(source: KafkaSource, records: pl.DataFrame) -> Chunk:
    topic = source.topics[0] if len(source.topics) == 1 else records["topic"][0]
    partition, offsets = f"{topic}/{records['partition'][0]}", records["offset"]
    return Chunk(
        frame=records.select(
            pl.col("value").alias("__payload"),
            pl.col("key").alias("__key"),
            kafka_headers(records["headers"]).alias("__headers"),
        ),
        partition=partition,
        file=partition,
        first_offset=int(offsets[0]),
        source=partition,
        ingestion_ms=records["ingested_ms"],
        offsets=offsets,
    )


def kafka_headers(written: pl.Series) -> pl.Series:
    """Return headers from the JSON that Spark makes of them, in which their values are base64."""
    if written.null_count() == len(written):
        return pl.Series(written.name, [None], dtype=HEADERS).new_from_index(0, len(written))
    pairs = written.str.json_decode(_WRITTEN_HEADERS)
    value = pl.element().struct.field("value").str.decode("base64")
    name = pl.element().struct.field("key").alias("name")
    return (
        pairs.to_frame("headers").select(pl.col("headers").list.eval(pl.struct(name, value.alias("value")))).to_series()
    )


def conform(frame: pl.DataFrame, schema: pl.Schema, place: str) -> pl.DataFrame:
    """Return a typed source's frame with exactly the declared columns; a missing one is null.

    A column of another type becomes the declared one where that changes no value of it; else `place` is at fault.
    """
    missing = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in frame.columns]
    frame = frame.with_columns(missing).select(schema.names())
    for column in frame:
        dtype = schema[column.name]
        if column.dtype == dtype:
            continue
        try:
            taken = column.cast(dtype, strict=False)
            changed = taken.cast(column.dtype, strict=False).ne_missing(column)
        except pl.exceptions.PolarsError:
            taken, changed = column, column.is_not_null()
        if changed.any():
            value = column.filter(changed).head(1).to_list()[0]
            facts = {"column": column.name, "found": column.dtype, "declared": dtype, "value": f"{value!r:.100}"}
            raise fault("SOURCE_COLUMN_TYPE", place=place, **facts)
        frame = frame.with_columns(taken)
    return frame


def _ticks(plan: Plan, *, wanted: bool) -> list[Packet]:
    return [tick(label) for label in labels(plan.key_groups)] if wanted else []


class SparkStore:
    """A key group's blobs in Spark's map state."""

    def __init__(self, state: Any) -> None:  # noqa: ANN401  PySpark's MapState has no public type
        self._state = state

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None."""
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: str, blob: bytes) -> None:
        """Store a blob."""
        self._state.updateValue((key,), (blob,))

    def remove(self, key: str) -> None:
        """Remove a blob."""
        self._state.removeKey((key,))


class KeyedProcessor(StatefulProcessor):
    """KEYED on Spark: one stage's steps, called once per key group and batch."""

    def __init__(self, handle: PlanHandle, stage: int) -> None:
        self._handle = handle
        self._number = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state: one map of blobs, named for the stage; the steps' names are in its keys."""
        self._state = handle.getMapState(f"stage_{self._number}", _NAME, _BLOB)
        # Spark also calls this outside any task, to learn the state's schema; there is no clock then.
        self._task: tuple[Stage, Clock] | None = None

    def handleInputRows(  # type: ignore[override]  # noqa: N802  Spark's name; of its two kinds of rows, ours
        self,
        key: Any,  # noqa: ANN401  as Spark hands it over
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, ARG002, N803  Spark's names, by keyword
    ) -> Iterator[pd.DataFrame]:
        """Run one batch of one key group."""
        if self._task is None:
            self._task = (Stage(self._handle.load(), self._number), task_clock())
        stage, clock = self._task
        columns = list(Packet._fields)
        packets = (Packet(*row) for frame in rows for row in zip(*(frame[name] for name in columns), strict=True))
        out = list(stage.run(int(key[0]), packets, SparkStore(self._state), clock))
        crash_point("keyed", clock.batch)
        if out:
            yield pd.DataFrame(out, columns=columns)

    def close(self) -> None:
        """Nothing is held open."""
