"""Building the streaming DataFrame of packets for a plan: FRONT per source, then one KEYED stage after another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

from slackwater.engine.key_groups import labels
from slackwater.operators.state.packets import DDL
from slackwater.spark.processor import KeyedProcessor, PlanHandle
from slackwater.spark.worker import front

if TYPE_CHECKING:
    from slackwater.connectors.intake import Intake
    from slackwater.plan.plan import Plan, SourcePlan


def packets(
    spark: SparkSession, plan: Plan, handle: PlanHandle, *, bounded: bool, intakes: Mapping[str, Intake], home: str
) -> DataFrame:
    """Return the stream of packets that leaves the last stage; `home` is Slackwater's folder in the checkpoint."""
    fronts = [
        _front(spark, source, handle, intakes[source.name], bounded=bounded, home=home) for source in plan.sources
    ]
    stream = reduce(DataFrame.unionAll, [*fronts, heartbeat(spark, plan)])
    for number in range(plan.stages):
        processor = KeyedProcessor(handle, number, home)
        stream = stream.groupBy("key_group").transformWithStateInPandas(processor, DDL, "append", "None")
    return stream


def _front(
    spark: SparkSession,
    source: SourcePlan,
    handle: PlanHandle,
    intake: Intake,
    *,
    bounded: bool,
    home: str,
) -> DataFrame:
    # Bounded runs have no heartbeat after the first batch, so FRONT emits ticks too.
    run = front(handle, source.name, ticks=bounded, home=home)
    return source.source.read(spark, intake.reading(bounded=bounded)).mapInArrow(run, DDL)


def heartbeat(spark: SparkSession, plan: Plan) -> DataFrame:
    """Return one tick per key group and batch, so that windows fire without new rows.

    It is identical in every batch and does not even contain the time: Spark would recompile the plan, and the JVM warm
    it up again, for every literal that changes.
    """
    beat = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1).load()
    nothing = F.lit("")
    return beat.select(
        F.explode(F.array(*map(F.lit, labels(plan.key_groups)))).alias("key_group"),
        F.lit("tick").alias("kind"),
        nothing.alias("target"),
        nothing.alias("order"),
        F.lit(0).cast("long").alias("rows"),
        F.lit(0).cast("long").alias("min_end_ms"),
        F.lit(0).cast("long").alias("max_end_ms"),
        F.lit(None).cast("binary").alias("payload"),
    )
