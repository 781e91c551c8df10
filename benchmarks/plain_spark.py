"""`python benchmarks/plain_spark.py LOG OUT [batch]`: what a cold start is compared with, written in plain PySpark.

Counts and sums per key and minute, from JSON lines to Parquet: a stream that reads what is there and ends
(`availableNow`), with a watermark and a checkpoint; or, with `batch`, a plain read, `groupBy` and write.
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

DDL = "event_id long, key string, ts long, value double"


def counted(events: DataFrame) -> DataFrame:
    """Return the counts and sums of `events`, which have a `time`."""
    return (
        events.groupBy(F.window("time", "1 minute").alias("window"), "key")
        .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        .select("key", F.col("window.start").alias("window_start"), "window.end", "n", "total")
    )


def main(log: str, out: str, kind: str = "stream") -> None:
    """Run the stream, or the batch."""
    spark = (
        SparkSession.Builder()
        .master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    time = F.timestamp_millis("ts")
    if kind == "batch":
        counted(spark.read.schema(DDL).json(log).withColumn("time", time)).write.parquet(out)
    else:
        events = spark.readStream.schema(DDL).json(log).withColumn("time", time)
        query = (
            counted(events.withWatermark("time", "10 seconds"))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(Path(out).with_name("checkpoint")))
            .trigger(availableNow=True)
            .start(out)
        )
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
