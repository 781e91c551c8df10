"""A Kafka source as Spark's connector reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.connectors.kafka.client import Cluster, kafka_errors
from slackwater.connectors.kafka.jars import connector_jars
from slackwater.connectors.kafka.source.offsets import connector_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from slackwater.connectors.kafka.source.definition import KafkaSource

_PATIENCE = "120"
_POLL_RECORDS = 100_000
_POLL_BYTES = 4 << 20
_POLL_WAIT_MS = 20
_CONNECTOR = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def kafka_stream(spark: SparkSession, kafka: KafkaSource) -> DataFrame:
    """Return a source's records as a streaming DataFrame."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415  PySpark's own convention; definitions need no Spark

    columns = ["value", "key", "partition", "offset"]
    if len(kafka.topics) != 1:
        columns.append("topic")
    # As text: for a nested column, Spark's Arrow writer takes minutes per million rows.
    headers = F.to_json("headers", {"ignoreNullFields": "false"}).alias("headers")
    records = _kafka_reader(spark, kafka).load()
    return records.select(*columns, headers, F.unix_millis("timestamp").alias("ingested_ms"))


def _kafka_reader(spark: SparkSession, kafka: KafkaSource) -> DataStreamReader:
    load_connector(spark)
    reader = (
        spark.readStream.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in kafka.connection.for_java().items()})
        .options(**_kafka_start(kafka))
        .option("kafka.isolation.level", "read_committed")
        # After each poll the connector asks for the topic's end offsets and discards what it had prefetched: hence few,
        # large polls. Its requests wait behind a fetch at the end of the topic: hence a short one.
        .option("kafka.max.poll.records", _POLL_RECORDS)
        .option("kafka.max.partition.fetch.bytes", _POLL_BYTES)
        .option("kafka.fetch.max.wait.ms", _POLL_WAIT_MS)
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", kafka.max_records_per_batch)
        .option("failOnDataLoss", "true" if kafka.on_data_loss == "stop" else "false")
        # Wait for a broker that is restarting.
        .option("fetchOffset.numRetries", _PATIENCE)
        .option("fetchOffset.retryIntervalMs", "1000")
    )
    if kafka.pattern is not None:
        return reader.option("subscribePattern", kafka.pattern)
    return reader.option("subscribe", ",".join(kafka.topics))


def _kafka_start(kafka: KafkaSource) -> dict[str, str]:
    """Return the options for where a new checkpoint starts; the connector uses them for nothing else."""
    if kafka.offsets is None:
        return dict(kafka.starting)
    cluster = Cluster(connection=kafka.connection)
    with kafka_errors(kafka.connection):
        places = cluster.partitions(cluster.topics(kafka.topics, kafka.pattern))
    return {"startingOffsets": connector_offsets(kafka.offsets, places)}


def load_connector(spark: SparkSession) -> None:
    """Load Spark's Kafka connector into the session, unless it has it already."""
    if not spark._jvm.org.apache.spark.util.Utils.classIsLoadable(_CONNECTOR):  # type: ignore[union-attr]  # noqa: SLF001  no public way
        for jar in connector_jars():
            spark.sql(f"ADD JAR '{jar}'")
