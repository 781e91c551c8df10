"""`python benchmarks/latency/plain_spark.py CASE SERVERS HOME`: the latency cases in plain PySpark.

With Spark's own operators and its own Kafka sink, which is at least once; in a query with its defaults, as fast as it
can, until it is terminated.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention
from pyspark.sql.streaming.state import GroupState

from slackwater.connectors.kafka.source.stream import load_connector

DDL = "id long, key string, ts long, value double"


def events(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """Return the stream of a topic."""
    records = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
    )
    event = F.from_json(F.col("value").cast("string"), DDL).alias("event")
    named = records.select(event).select("event.*").withColumn("time", F.timestamp_millis("ts"))
    return named.withWatermark("time", "5 seconds")


def count(
    key: tuple[str],  # noqa: ARG001  in the frames as well
    frames: Iterator[pd.DataFrame],
    state: GroupState,
) -> Iterator[pd.DataFrame]:
    """Number the events of a key."""
    seen = state.get[0] if state.exists else 0
    for frame in frames:
        frame["number"] = range(seen + 1, seen + 1 + len(frame))
        seen += len(frame)
        yield frame[["id", "key", "number"]]
    state.update((seen,))


def results(spark: SparkSession, servers: str, case: str) -> tuple[DataFrame, str]:
    """Return the results of a case, and their output mode."""
    left = events(spark, servers, "events")
    if case == "filter":
        return left.where("value >= 0.1").drop("time"), "append"
    if case == "process":
        shown: Any = "id long, key string, number long"
        numbered = left.groupBy("key").applyInPandasWithState(count, shown, "seen long", "append", "NoTimeout")
        return numbered, "append"
    if case == "window":
        windows = left.groupBy(F.window("time", "1 minute"), "key")
        return windows.agg(F.max("id").alias("id"), F.count("*").alias("n"), F.sum("value").alias("total")), "update"
    others = events(spark, servers, "others").select(F.col("id").alias("other"), F.col("time").alias("other_time"))
    near = F.expr("id = other AND other_time BETWEEN time - INTERVAL 5 SECONDS AND time + INTERVAL 5 SECONDS")
    return left.join(others, near), "append"


def main(case: str, servers: str, home: str) -> None:
    """Run the query until it is terminated."""
    spark = (
        SparkSession.Builder()
        .master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    load_connector(spark)
    shown, mode = results(spark, servers, case)
    record = F.to_json(F.struct("*")).alias("value")
    query = (
        shown.select(F.col("key"), record)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "results")
        .option("checkpointLocation", f"{home}/checkpoint")
        .outputMode(mode)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
