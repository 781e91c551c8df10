"""The Spark session and the settings that Slackwater needs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from slackwater.base.errors import fault
from slackwater.base.stopping import kept_handlers
from slackwater.spark.jvm import Jvm
from slackwater.spark.jvm_noise import mute_accumulators, mute_py4j
from slackwater.spark.session_conf import session_conf, start_jvm

QUERY_CONF: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # The default manager starts ten processes (chmod, readlink) for every file it writes to a local checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Renaming must replace an existing file, or a replayed batch would keep the state of the attempt that crashed.
    # The local file system of Hive's jar silently does not replace; caching is off, because a cached one would be used.
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    "spark.sql.session.timeZone": "UTC",
    # Listings of logs are folders. For more than 32 of them, Spark would start a job with one task each.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # Rows reach FRONT in small Arrow batches, which it gathers. Spark would check a limit in bytes after every row,
    # column by column, which takes longer than writing the row; the largest possible number means no limit.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    # Spark does not pass this setting on to stateful workers, so with it FRONT and KEYED could not share workers.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
"""Settings of a query, set on the session while the query starts and restored afterwards."""

UNPACKING_CONF: Final = {"spark.sql.execution.arrow.maxBytesPerBatch": str(128 << 20)}
"""Settings for unpacking large outputs: their packets are few rows, but megabytes each."""

_HUSHED: Final[set[str]] = set()
_HUSH_LOCK: Final = threading.Lock()
_TOLD_BY_JOBS: Final = (
    "executor.Executor",
    "scheduler.TaskSetManager",
    "sql.execution.streaming.runtime.MicroBatchExecution",
    "sql.execution.streaming.state",
)
"""Loggers of task failures. The job's error says the same once, instead of three times with stack traces."""


def spark_session(
    *, master: str | None, name: str, conf: Mapping[str, str] | None = None, jvm: Jvm | None = None
) -> SparkSession:
    """Return the active session, or a new one on `master` (all local cores by default), in `jvm` if it was started."""
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    # Workers must run this same Python, whatever else is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    mute_py4j()
    given = session_conf(master, name, conf or {})
    jvm = jvm or start_jvm(master=master, name=name, conf=conf or {}, is_short=False)
    try:
        if jvm is not None:
            jvm.connect()
        with kept_handlers():
            session = SparkSession.Builder().config(map={**given}).getOrCreate()
    except (Py4JJavaError, PySparkRuntimeError) as error:
        java = getattr(error, "java_exception", None)
        cause = str(error if java is None else java.getMessage()).strip().partition("\n")[0]
        raise fault("SPARK_START", master=given["spark.master"], cause=cause) from error
    mute_accumulators(getattr(session.sparkContext, "_accumulatorServer", None))
    session.sparkContext.setLogLevel("ERROR")
    log4j: Any = session._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001  no public way
    for logger in _TOLD_BY_JOBS:
        log4j.core.config.Configurator.setLevel(f"org.apache.spark.{logger}", log4j.Level.OFF)
    return session


def hush(spark: SparkSession, name: str) -> None:
    """Turn off Spark's logging while the query `name` is stopped, because Spark logs interrupted work as errors."""
    with _HUSH_LOCK:
        _HUSHED.add(name)
        spark.sparkContext.setLogLevel("OFF")


def unhush(spark: SparkSession, name: str) -> None:
    """Turn Spark's logging back on, unless another query of the session is being stopped."""
    with _HUSH_LOCK:
        _HUSHED.discard(name)
        if not _HUSHED:
            spark.sparkContext.setLogLevel("ERROR")
