"""The code that runs in Spark's Python workers: FRONT in `mapInArrow`, KEYED in the stateful processor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext

from slackwater.base.crash_points import crash_point
from slackwater.base.errors import fault
from slackwater.base.sealed import checkpoint_folder
from slackwater.connectors.source import TaskFacts
from slackwater.engine.enrichment.answers import FolderAnswers
from slackwater.engine.enrichment.cached_lookups import CachedLookups
from slackwater.engine.enrichment.enrichment import Enrichment
from slackwater.engine.enrichment.snapshots import FolderSnapshots
from slackwater.engine.front.front import Front
from slackwater.engine.key_groups import labels
from slackwater.engine.keyed.stage import Stage
from slackwater.eventtime.clock import Clock
from slackwater.operators.state.packets import Packet, tick, to_arrow
from slackwater.plan.plan import Plan
from slackwater.spark.processor import PlanHandle
from slackwater.spark.state_store import SparkStore

CLOCK_PROPERTY: Final = "slackwater.clock"
_PATIENCE_S: Final = 10.0
_LOOKUPS: Final = CachedLookups()
"""The lookups of this worker process, with their connections and caches."""


def task_clock() -> Clock:
    """Return the clock of this task's batch; fail if there is none, because no default would be right."""
    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    text = context.getLocalProperty(CLOCK_PROPERTY)
    clock = None if text is None else Clock.from_property(text)
    if clock is None or str(clock.batch) != batch:
        raise fault("CLOCK_NOT_HANDED_OVER", batch=batch)
    return clock


Run = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_enrichment(home: str, clock: Clock) -> Enrichment:
    """Return a task's access to stores and tables; answers and tables are in the checkpoint, shared by all tasks."""
    context = TaskContext.get()
    assert context is not None
    files = checkpoint_folder(Path(home), clock.incarnation)
    return Enrichment(
        clock=clock,
        answers=FolderAnswers(files=files),
        snapshots=FolderSnapshots(files=files),
        lookups=_LOOKUPS,
        # The driver cannot interrupt a task, so a task waits only briefly; the batch waits longer and can be stopped.
        patience_s=_PATIENCE_S if context.attemptNumber() == 0 else 0.0,
    )


def front(handle: PlanHandle, stream: str, *, ticks: bool, home: str) -> Run:
    """Return FRONT for a stream, as a function for `mapInArrow`; `home` is Slackwater's folder in the checkpoint.

    A task without input does nothing. Any other task is identified by its first file in the statistics.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None:
            return
        plan, clock = handle.load(), task_clock()
        [source] = [source for source in plan.sources if source.name == stream]
        working = Front(plan, source, clock, task_enrichment(home, clock))
        crash_point("front", clock.batch)
        task = ""
        # The final batch of a bounded run may contain data that arrived after its start; a later run will read it.
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


@dataclass(frozen=True)
class KeyedTask:
    """KEYED in one task: one stage's steps under the clock of the batch."""

    stage: Stage
    store: SparkStore
    clock: Clock

    @classmethod
    def of(cls, plan: Plan, stage: int, state: Any, home: str) -> KeyedTask:  # noqa: ANN401  PySpark's MapState has no public type
        """Return a stage of `plan` on Spark's map state, for the current task; `home` is as for `front`."""
        clock = task_clock()
        files = checkpoint_folder(Path(home), clock.incarnation)
        return cls(Stage(plan, stage, task_enrichment(home, clock), files), SparkStore(state), clock)

    def run(self, key_group: int, rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Run one batch of one key group."""
        columns = list(Packet._fields)
        packets = (Packet(*row) for frame in rows for row in zip(*(frame[name] for name in columns), strict=True))
        out = list(self.stage.run(key_group, packets, self.store, self.clock))
        crash_point("keyed", self.clock.batch)
        if out:
            yield pd.DataFrame(out, columns=columns)
