"""KEYED as Spark calls it: a stateful processor, and the plan on its way to the workers.

Before the first batch Spark makes a processor in a process of its own, to learn the shape of the state, and waits for
it. So nothing here is loaded that only a batch needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

if TYPE_CHECKING:
    import pandas as pd

    from slackwater.planning.plan import Plan
    from slackwater.spark.worker import KeyedTask

# As types: Spark asks the JVM what a text means, four times a task.
_NAME: Final = StructType([StructField("name", StringType())])
_BLOB: Final = StructType([StructField("blob", BinaryType())])


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


class KeyedProcessor(StatefulProcessor):
    """KEYED on Spark: one stage's steps, called once per key group and batch."""

    def __init__(self, handle: PlanHandle, stage: int, home: str) -> None:
        self._handle = handle
        self._number = stage
        self._home = home

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state: one map of blobs, named for the stage; the steps' names are in its keys."""
        self._state = handle.getMapState(f"stage_{self._number}", _NAME, _BLOB)
        # Where Spark only learns the shape of the state there is no clock.
        self._task: KeyedTask | None = None

    def handleInputRows(  # type: ignore[override]  # noqa: N802  Spark's name; of its two kinds of rows, ours
        self,
        key: Any,  # noqa: ANN401  as Spark hands it over
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, ARG002, N803  Spark's names, by keyword
    ) -> Iterator[pd.DataFrame]:
        """Run one batch of one key group."""
        if self._task is None:
            from slackwater.spark.worker import KeyedTask  # noqa: PLC0415  see the top

            self._task = KeyedTask.of(self._handle.load(), self._number, self._state, self._home)
        return self._task.run(int(key[0]), rows)

    def close(self) -> None:
        """Nothing is held open."""
