"""The key groups of a checkpoint, read through Spark's own state reader.

State is stored in RocksDB files and changelogs, whose formats depend on the version of Spark. Spark's reader knows
them, takes no lock, writes nothing to the checkpoint, and loads the state as of a committed batch. It is slow to start
(a JVM, and every partition loads its state first), but state is inspected by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

from slackwater.base.errors import RunError, cause_of, fault
from slackwater.base.spark_settings import settings
from slackwater.engine.checkpoint.damage import damage_of
from slackwater.engine.key_groups import spark_hash
from slackwater.observe.state_reading.groups import Answer, GroupQuery, StoredStep, answers
from slackwater.observe.state_reading.stored import StoredState, chosen_batch, state_name
from slackwater.operators.state.store import INDEX
from slackwater.spark.failures import unwrapped
from slackwater.spark.session import UNPACKING_CONF, hush, unhush

_ANSWERS: Final = pa.schema([("step", pa.string()), ("facts", pa.string()), ("rows", pa.binary())])  # type: ignore[arg-type]  # the stubs lose the types of mixed tuples
_DDL: Final = "step string, facts string, rows binary"


class CheckpointGroups:
    """The key groups of a checkpoint as of a batch."""

    def __init__(self, spark: SparkSession, stored: StoredState) -> None:
        self._spark = spark
        self._stored = stored
        # The reader reports to a part of Spark that starts with the first use of streams.
        _ = spark.streams.active

    def ask(
        self, steps: Sequence[StoredStep], reading: GroupQuery, groups: Iterable[int] | None = None
    ) -> list[Answer]:
        """Return the answers of all key groups, or of those with the given labels."""
        wanted = None if groups is None else sorted({*groups})
        found: list[Answer] = []
        hush(self._spark, "slackwater state")
        try:
            with settings(self._spark, UNPACKING_CONF):
                for stage in sorted({step.stage for step in steps}):
                    found += self._stage(stage, [step for step in steps if step.stage == stage], reading, wanted)
        except (PySparkException, Py4JError) as error:
            raise self._explained(error) from error
        finally:
            unhush(self._spark, "slackwater state")
        return found

    def _stage(
        self, stage: int, steps: Sequence[StoredStep], reading: GroupQuery, groups: list[int] | None
    ) -> Iterable[Answer]:
        blobs = self._blobs(stage, [step.name for step in steps])
        if groups is not None:
            blobs = blobs.where(F.col("key_group").isin(groups))
        found = blobs.mapInArrow(_answering(steps, reading), _DDL)
        if groups is None:
            rows = found.collect()
        else:
            # A filter would not keep Spark from loading the other partitions. The reader has one RDD partition for
            # each partition of state, so only those that are needed are run.
            numbers = sorted({spark_hash(label) % self._stored.partitions for label in groups})
            rows = self._spark.sparkContext.runJob(found.rdd, list, numbers)
        return [Answer(row["step"], row["facts"], bytes(row["rows"])) for row in rows]

    def _blobs(self, stage: int, steps: list[str]) -> DataFrame:
        """Return the indexes and pieces of some steps of a stage."""
        options = {
            "operatorId": str(self._stored.operator(stage)),
            "stateVarName": state_name(stage),
            "batchId": str(self._stored.batch),
        }
        state = self._spark.read.format("statestore").options(**options).load(str(self._stored.path))
        blobs = state.selectExpr("key.key_group", "user_map_key.name", "user_map_value.blob")
        owner = F.regexp_replace("name", "/[0-9]+$", "")
        return blobs.where((F.col("name") == INDEX) | owner.isin(steps))

    def _explained(self, error: Exception) -> Exception:
        """Return the cause of a failure: a batch that Spark has removed meanwhile, damage, or a Slackwater error."""
        found = unwrapped(error)
        if isinstance(found, RunError):
            return found
        try:
            chosen_batch(self._stored.path, self._stored.batch)
        except RunError as gone:
            return gone
        if (damage := damage_of(self._stored.path, error)) is not None:
            return damage
        java = getattr(error, "java_exception", None)
        cause = cause_of(error) if java is None else str(java.getMessage()).strip().partition("\n")[0]
        return fault("STATE_READ_FAILED", path=self._stored.path, batch=self._stored.batch, cause=cause)


def _answering(steps: Sequence[StoredStep], reading: GroupQuery) -> Any:  # noqa: ANN401  as mapInArrow expects it
    """Return a function for `mapInArrow` that reads the key groups of a partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        # Spark sorts by key group first, so only one group is in memory at a time.
        for _, group in groupby(rows, key=lambda row: row[0]):
            found = list(answers({name: blob for _, name, blob in group}, steps, reading))
            if found:
                yield pa.RecordBatch.from_pylist([answer._asdict() for answer in found], schema=_ANSWERS)

    return run
