"""The streaming query of a job: started with its own settings, and never while another of the same name is active."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from slackwater.base.backoff import came_true
from slackwater.base.errors import fault
from slackwater.base.spark_settings import settings
from slackwater.connectors.intake import RETAIN
from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.spark.processor import PlanHandle
from slackwater.spark.query import packets
from slackwater.spark.session import QUERY_CONF

if TYPE_CHECKING:
    from slackwater.connectors.intake import Intake
    from slackwater.plan.plan import Plan

_STARTING: Final = threading.Lock()
"""Serializes the starts of a session's jobs: each needs its own session settings until it has started."""
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
    """Start the query of `plan`; without `trigger_ms` it reads the available data and ends."""
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
        # A source uses the session settings at the time when Spark's thread creates it.
        with suppress(StreamingQueryException):  # raised again while waiting for the end of the query
            query._jsq.streamingQuery().awaitInitialization(_INITIALIZED_MS)  # noqa: SLF001  no public way
    return query


def check_alone(spark: SparkSession, name: str, before: Any) -> None:  # noqa: ANN401  a StreamingQuery, or None
    """Reject a second query of the same job; its previous one, `before`, may stay listed for a moment after its end."""
    own = None if before is None else before.runId

    def is_alone() -> bool:
        same = [query.runId for query in spark.streams.active if query.name == name]
        if same not in ([], [own]):
            raise fault("PIPELINE_RUNNING", name=name)
        return not same

    if not came_true(is_alone, within_s=_LISTED_S, every_s=0.01):
        raise fault("PIPELINE_RUNNING", name=name)
