"""What the sides run: the same counts and sums, into the same kind of files.

All shuffle into as many partitions, and write Parquet exactly once: Slackwater with its files sink, Spark with its own.
Slackwater keeps its state in RocksDB with changelog checkpoints; Spark does so too, and once more in its default store.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

import slackwater as sw
from benchmarks.cases import Case
from benchmarks.data import DDL, Events
from benchmarks.workloads import DEFAULT_STORE, ROCKSDB, Rivalled, Workload
from slackwater.base.spark_settings import settings
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.session import QUERY_CONF, spark_session
from slackwater.spark.start import make_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from slackwater.connectors.source import Source
    from slackwater.formats import Format

OUT_OF_ORDERNESS_S: Final = 10
_PARTITIONS: Final = 2
_KEY_GROUPS: Final = 4
"""Two a partition, as a pipeline for two cores would have; each group costs a little in every batch."""
STATE_STORES: Final[Mapping[str, Mapping[str, str]]] = {
    ROCKSDB: {
        name: QUERY_CONF[name]
        for name in (
            "spark.sql.streaming.stateStore.providerClass",
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        )
    },
    DEFAULT_STORE: {},
}
"""What Spark's side is given beyond its defaults: the store that Slackwater has, or nothing."""


def bench_session() -> SparkSession:
    """Return the session that both sides share."""
    return spark_session(
        master="local[2]",
        name="bench",
        conf={
            "spark.driver.memory": "4g",
            # All that `--profile` asks about at the end of a case.
            "spark.sql.streaming.numRecentProgressUpdates": "1000",
            "spark.ui.retainedJobs": "10000",
            "spark.ui.retainedStages": "10000",
        },
    )


def log_of(events: Events, folder: Path) -> Source:
    """Return the log in `folder` as Slackwater reads it; a batch takes whatever is there."""
    assert events.format != "avro", "a log has no Avro records"
    schema = DDL if events.format == "parquet" else None
    return sw.sources.log(folder, format=events.format, schema=schema, max_bytes_per_batch=1 << 40)


def frame_of(spark: SparkSession, events: Events, folder: Path) -> DataFrame:
    """Return the events in `folder` as Spark's own file source reads them."""
    return (
        spark.readStream.schema(DDL)
        .option("maxFilesPerTrigger", events.files_per_batch)
        .option("recursiveFileLookup", "true")
        .format(events.format)
        .load(str(folder))
    )


def our_job(
    spark: SparkSession,
    source: Source,
    workload: Workload,
    *,
    name: str,
    home: Path,
    form: Format | None = None,
    out_of_orderness_s: int = OUT_OF_ORDERNESS_S,
) -> Job:
    """Return the job of `workload` that loses nothing, not started yet."""
    events = sw.stream("events", source)
    if source.schema is None:
        events = events.decode(form or sw.formats.json(DDL))
    events = events.event_time("ts", out_of_orderness=f"{out_of_orderness_s}s")
    results, other_ends = workload.ours(events)
    pipeline = sw.Pipeline(
        name,
        results.to(sw.sinks.files(home / "ours-out" / "results")),
        *other_ends,
        events.dead_letters.to(sw.sinks.files(home / "ours-out" / "dead")),
        key_groups=_KEY_GROUPS,
    )
    checkpoint = home / "ours-checkpoint"
    return make_job(
        pipeline.plan(), RunOptions(spark=spark, checkpoint=checkpoint, trigger="0s", partitions=_PARTITIONS)
    )


def spark_query(spark: SparkSession, case: Case, events: DataFrame, *, home: Path, store: str) -> StreamingQuery:
    """Start Spark's own operators over `events`, with their state in one of the `STATE_STORES`."""
    assert isinstance(case.workload, Rivalled)
    timed = events.withColumn("time", F.timestamp_millis("ts"))
    results = case.workload.sparks(timed.withWatermark("time", f"{OUT_OF_ORDERNESS_S} seconds"))
    conf = {
        **STATE_STORES[store],
        "spark.sql.shuffle.partitions": str(_PARTITIONS),
        # While it waits it must not work: no batches without rows, and a look at the folder now and then.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.pollingDelay": "2s",
    }
    with settings(spark, conf):
        return (
            results.writeStream.queryName(f"spark-{case.name} ({store})")
            .outputMode("append")
            .format("parquet")
            .option("checkpointLocation", str(home / "spark-checkpoint"))
            .start(str(home / "spark-out"))
        )
