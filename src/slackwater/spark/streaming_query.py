"""The streaming query of a job: started with its settings, and never beside another of the same name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from slackwater.checkpoint.checkpoint import RETAIN, Checkpoint
from slackwater.errors import fault
from slackwater.ground.spark_settings import settings
from slackwater.spark.processor import PlanHandle
from slackwater.spark.query import packets
from slackwater.spark.session import QUERY_CONF

if TYPE_CHECKING:
    from slackwater.planning.plan import Plan
    from slackwater.sources.intake import Intake

_STARTING: Final = threading.Lock()
"""Jobs of one session are started one at a time: each needs its own settings of the session until it has begun."""
_LISTED_S: Final = 10.0
_INITIALIZED_MS: Final = 60_000


def start_query(
    spark: SparkSession,
    plan: Plan,
    *,
    checkpoint: Checkpoint,
    intakes: Mapping[str, Intake],
    trigger_ms: int | None,
    on_batch: Callable[[DataFrame, int], None],
) -> Any:  # noqa: ANN401  PySpark's StreamingQuery, and its private parts
    """Start the query of `plan`; without `trigger_ms` it reads what is there now, and ends."""
    handle, available_now = PlanHandle.of(plan), trigger_ms is None
    conf = {
        **QUERY_CONF,
        "spark.sql.shuffle.partitions": str(checkpoint.partitions),
        "spark.sql.streaming.minBatchesToRetain": str(RETAIN),
    }
    with _STARTING, settings(spark, conf):
        home = str(checkpoint.home)
        stream = packets(spark, plan, handle, bounded=available_now, intakes=intakes, home=home)
        writer = (
            stream.writeStream.queryName(plan.name)
            .outputMode("append")
            .option("checkpointLocation", str(checkpoint.path))
            .foreachBatch(on_batch)
        )
        writer = (
            writer.trigger(availableNow=True)
            if available_now
            else writer.trigger(processingTime=f"{trigger_ms} milliseconds")
        )
        query: Any = writer.start()
        # A source takes what the session is set to when Spark's thread comes to make it.
        with suppress(StreamingQueryException):  # which is raised again where the end of the query is awaited
            query._jsq.streamingQuery().awaitInitialization(_INITIALIZED_MS)  # noqa: SLF001  no public way
    return query


def check_alone(spark: SparkSession, name: str, before: Any) -> None:  # noqa: ANN401  a StreamingQuery, or None
    """Refuse to run a job beside itself; `before`, its query that has ended, may still be listed for a moment."""
    own = None if before is None else before.runId
    patience = time.monotonic() + _LISTED_S
    while same := [query.runId for query in spark.streams.active if query.name == name]:
        if same != [own] or time.monotonic() > patience:
            raise fault("PIPELINE_RUNNING", name=name)
        time.sleep(0.01)
