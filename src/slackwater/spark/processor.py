"""KEYED as a Spark stateful processor, and the plan as it is sent to the workers.

Before the first batch, Spark creates a processor in a separate process to learn the schema of the state, and waits for
it. This module therefore imports nothing that only a batch needs.
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

    from slackwater.plan.plan import Plan
    from slackwater.spark.worker import KeyedTask

# As types, not DDL text: Spark would ask the JVM to parse the text four times per task.
_NAME: Final = StructType([StructField("name", StringType())])
_BLOB: Final = StructType([StructField("blob", BinaryType())])


@dataclass(frozen=True)
class PlanHandle:
    """A pickled plan, which workers unpickle once per process instead of once per task."""

    blob: bytes

    @classmethod
    def of(cls, plan: Plan) -> PlanHandle:
        """Pickle `plan`, including the user's functions."""
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
        """Open the state: one map of blobs, named after the stage; its keys contain the steps' names."""
        self._state = handle.getMapState(f"stage_{self._number}", _NAME, _BLOB)
        # There is no clock when Spark only asks for the schema of the state.
        self._task: KeyedTask | None = None

    def handleInputRows(  # type: ignore[override]  # noqa: N802  Spark's name; it allows two types of rows, this is one
        self,
        key: Any,  # noqa: ANN401  as Spark passes it
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, ARG002, N803  Spark's name, passed by keyword
    ) -> Iterator[pd.DataFrame]:
        """Run one batch of one key group."""
        if self._task is None:
            from slackwater.spark.worker import KeyedTask  # noqa: PLC0415  see the top

            self._task = KeyedTask.of(self._handle.load(), self._number, self._state, self._home)
        return self._task.run(int(key[0]), rows)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
