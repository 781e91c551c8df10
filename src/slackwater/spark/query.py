"""From a plan to a Spark streaming DataFrame of packets: FRONT per source, then one KEYED stage after another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

from slackwater.kafka.client import Cluster, kafka_errors
from slackwater.sources.dataframe import DataFrameSource
from slackwater.sources.delta.definition import DeltaSource
from slackwater.sources.delta.stream import delta_stream
from slackwater.sources.kafka.connector import connector_jars
from slackwater.sources.kafka.definition import KafkaSource
from slackwater.sources.kafka.offsets import connector_offsets
from slackwater.sources.log.definition import LogSource
from slackwater.spark.worker import KeyedProcessor, PlanHandle, frame_chunks, front, kafka_chunks, log_chunks
from slackwater.state.key_groups import labels
from slackwater.state.packets import DDL

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from slackwater.planning.plan import Plan, SourcePlan
    from slackwater.spark.log_intake import LogIntake

_A_DAY = "1d"
_PATIENCE = "120"
_POLL_RECORDS = 100_000
_POLL_BYTES = 4 << 20
_POLL_WAIT_MS = 20
_CONNECTOR = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def packets(
    spark: SparkSession, plan: Plan, handle: PlanHandle, *, bounded: bool, logs: Mapping[str, LogIntake]
) -> DataFrame:
    """Return the stream of packets that leaves the last stage."""
    fronts = [_front(spark, source, handle, bounded=bounded, logs=logs) for source in plan.sources]
    stream = reduce(DataFrame.unionAll, [*fronts, heartbeat(spark, plan)])
    for number in range(plan.stages):
        processor = KeyedProcessor(handle, number)
        stream = stream.groupBy("key_group").transformWithStateInPandas(processor, DDL, "append", "None")
    return stream


def _front(
    spark: SparkSession, source: SourcePlan, handle: PlanHandle, *, bounded: bool, logs: Mapping[str, LogIntake]
) -> DataFrame:
    match source.source:
        case LogSource():
            intake = logs[source.name]
            reader = (
                spark.readStream.format("text")
                .option("recursiveFileLookup", "true")
                # Listings get later and later times; Spark need not remember those of yesterday.
                .option("maxFileAge", _A_DAY)
            )
            if bounded:
                # All listings are there, and a batch takes one. Those of a live job are made as batches take them.
                reader = reader.option("maxFilesPerTrigger", intake.shares)
            listed = reader.load(_literal(str(intake.listings)))
            # Bounded batches have no heartbeat after the first, so FRONT ticks as well.
            return listed.mapInArrow(front(handle, source.name, log_chunks, ticks=bounded), DDL)
        case KafkaSource() as kafka:
            records = _kafka_reader(spark, kafka).load()
            columns = ["value", "key", "partition", "offset"]
            if len(kafka.topics) != 1:
                columns.append("topic")
            # As text: with a nested column Spark's Arrow writer takes minutes for a million rows.
            headers = F.to_json("headers", {"ignoreNullFields": "false"}).alias("headers")
            taken = records.select(*columns, headers, F.unix_millis("timestamp").alias("ingested_ms"))
            return taken.mapInArrow(front(handle, source.name, kafka_chunks, ticks=bounded), DDL)
        case DataFrameSource(frame=frame):
            typed: DataFrame = frame
            return _numbered(typed).mapInArrow(front(handle, source.name, frame_chunks, ticks=bounded), DDL)
        case DeltaSource() as table:
            rows = delta_stream(spark, table)
            return _numbered(rows).mapInArrow(front(handle, source.name, frame_chunks, ticks=bounded), DDL)
    message = f"{source.source} cannot run on Spark"
    raise TypeError(message)


def _numbered(frame: DataFrame) -> DataFrame:
    """Return `frame` with plain names for its columns: PySpark takes a dot for a way into a struct."""
    return frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))


def _kafka_reader(spark: SparkSession, kafka: KafkaSource) -> DataStreamReader:
    load_connector(spark)
    reader = (
        spark.readStream.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in kafka.connection.for_java().items()})
        .options(**_kafka_start(kafka))
        .option("kafka.isolation.level", "read_committed")
        # After each poll the connector asks for the topic's ends, and reads anew what it had fetched ahead: so few and
        # large polls. And what it asks waits behind a fetch at the end of the topic: so a short one.
        .option("kafka.max.poll.records", _POLL_RECORDS)
        .option("kafka.max.partition.fetch.bytes", _POLL_BYTES)
        .option("kafka.fetch.max.wait.ms", _POLL_WAIT_MS)
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", kafka.max_records_per_batch)
        .option("failOnDataLoss", "true" if kafka.on_data_loss == "stop" else "false")
        # A broker that is restarted is waited for.
        .option("fetchOffset.numRetries", _PATIENCE)
        .option("fetchOffset.retryIntervalMs", "1000")
    )
    if kafka.pattern is not None:
        return reader.option("subscribePattern", kafka.pattern)
    return reader.option("subscribe", ",".join(kafka.topics))


def _kafka_start(kafka: KafkaSource) -> dict[str, str]:
    """Return where a new checkpoint begins; the connector uses it for nothing else."""
    if kafka.offsets is None:
        return dict(kafka.starting)
    cluster = Cluster(connection=kafka.connection)
    with kafka_errors(kafka.connection):
        places = cluster.partitions(cluster.topics(kafka.topics, kafka.pattern))
    return {"startingOffsets": connector_offsets(kafka.offsets, places)}


def load_connector(spark: SparkSession) -> None:
    """Give the session Spark's Kafka connector, unless it has it."""
    if not spark._jvm.org.apache.spark.util.Utils.classIsLoadable(_CONNECTOR):  # type: ignore[union-attr]  # noqa: SLF001  no public way
        for jar in connector_jars():
            spark.sql(f"ADD JAR '{jar}'")


def _literal(path: str) -> str:
    """Return `path` such that Spark, which takes it for a pattern, finds this very folder."""
    return re.sub(r"([\\\[\]{}*?^])", r"\\\1", path)


def heartbeat(spark: SparkSession, plan: Plan) -> DataFrame:
    """Return one tick per key group and batch, so that windows fire without new rows.

    Nothing in it changes from batch to batch, the time least of all: Spark compiles a plan's code anew, and
    the JVM warms it up anew, for every literal that does.
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
