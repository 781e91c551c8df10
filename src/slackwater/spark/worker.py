"""What runs in Spark's Python workers: FRONT as `mapInArrow`, KEYED as a stateful processor."""

from __future__ import annotations

import itertools
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
from slackwater.front.front import Front
from slackwater.ground.crash_points import crash_point
from slackwater.keyed.stage import Stage
from slackwater.planning.plan import Plan
from slackwater.sources.base import TaskFacts
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


def front(handle: PlanHandle, stream: str, *, ticks: bool) -> Run:
    """Return FRONT for a stream, as `mapInArrow` runs it.

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
        for chunk in source.source.chunks(iter(given), _facts(stream, clock)):
            task = task or chunk.file
            if packets := working.process(chunk):
                yield to_arrow(packets)
        yield to_arrow([*working.finish(task), *_ticks(plan, wanted=ticks)])

    return run


def _facts(stream: str, clock: Clock) -> TaskFacts:
    context = TaskContext.get()
    assert context is not None
    rows_before = clock.streams[stream].rows
    return TaskFacts(stream=stream, number=context.partitionId(), rows_before=rows_before, now_ms=clock.now)


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
