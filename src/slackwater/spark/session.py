"""The Spark session, with what Slackwater needs of it."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from slackwater.errors import fault
from slackwater.ground.stopping import kept_handlers

QUERY_CONF: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # The default one starts ten processes (chmod, readlink) for every file it writes to a local checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Its renaming must replace a file: a batch that is run again must not keep the state of the attempt that crashed.
    # The local file system of Hive's jar does not replace, of which Spark says nothing; a cached one would be taken.
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    "spark.sql.session.timeZone": "UTC",
    # Listings of logs are folders. To look into more than 32 of them Spark would start a job of a task each.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # Rows reach FRONT in small Arrow batches, which it gathers. A limit in bytes would be Spark's to check after every
    # row, column by column, which takes longer than writing the row; the largest number there is means no limit.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
}
"""Settings of a query, made on the session while it is started and taken back afterwards."""

UNPACKING_CONF: Final = {"spark.sql.execution.arrow.maxBytesPerBatch": str(128 << 20)}
"""Settings while large outputs are unpacked: their packets are few rows, but megabytes each."""

WORKER_ENV: Final = {
    "POLARS_MAX_THREADS": "1",
    # Workers keep the memory they need in every batch. Given back and asked for again, it costs a third of FRONT.
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    # Never, not late: in a forked process any delay means that blocks of 8 MB and more are given back at once.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
}
"""What workers find in their environment."""

_SESSION_CONF: Final = {
    **{f"spark.executorEnv.{name}": value for name, value in WORKER_ENV.items()},
    "spark.python.daemon.module": "slackwater.spark.daemon",
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
}

_MASTER: Final = re.compile(r"local(\[[^\]]+\]|-cluster\[[^\]]+\])?|spark://.+|k8s://.+|yarn")
_HUSHED: Final[set[str]] = set()
_HUSH_LOCK: Final = threading.Lock()
_NOISE: Final = (
    b"Streaming TransformWithState",
    b"WARNING: Using incubator modules",
    b"Using Spark's default log4j profile",
    b"Setting default log level",
    b"To adjust logging level",
    b"NativeCodeLoader",
    b" WARN ",
)
"""Lines of Spark's that say nothing to a user; warnings that matter are raised by Slackwater itself."""
_TOLD_BY_JOBS: Final = (
    "executor.Executor",
    "scheduler.TaskSetManager",
    "sql.execution.streaming.runtime.MicroBatchExecution",
    "sql.execution.streaming.state",
)
"""What these log when a task fails ends the job, whose error has it all: once, not three times with stacks of calls."""


def spark_session(*, master: str | None, name: str, conf: dict[str, str] | None = None) -> SparkSession:
    """Return the active session, or a new one on `master` (all local cores unless told otherwise)."""
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise fault("JAVA_MISSING")
    # Workers must run this very Python, whatever else is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName(f"slackwater {name}")
    given: dict[str, Any] = {
        "spark.master": master or "local[*]",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        **_SESSION_CONF,
        **{f"spark.executorEnv.{name}": value for name, value in _utf8().items()},
        **(conf or {}),
    }
    for key, value in given.items():
        builder = builder.config(key, value)
    # Of a connection that breaks because the JVM has ended, Py4J would log its stack of calls; the job's error has it.
    logging.getLogger().addFilter(_is_not_py4js)
    try:
        with _filtered_stderr(), _environment(_utf8()), kept_handlers():
            session = builder.getOrCreate()
    except (Py4JJavaError, PySparkRuntimeError) as error:
        java = getattr(error, "java_exception", None)
        cause = str(error if java is None else java.getMessage()).strip().partition("\n")[0]
        raise fault("SPARK_START", master=given["spark.master"], cause=cause) from error
    session.sparkContext.setLogLevel("ERROR")
    log4j: Any = session._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001  no public way
    for logger in _TOLD_BY_JOBS:
        log4j.core.config.Configurator.setLevel(f"org.apache.spark.{logger}", log4j.Level.OFF)
    return session


def check_master(master: str | None) -> None:
    """Refuse what no Spark can be started on."""
    if master is not None and not _MASTER.fullmatch(master):
        raise fault("SPARK_MASTER", got=master)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _utf8() -> dict[str, str]:
    """Return what lets a JVM read every path: under the C locale (cron, systemd) it takes no name beyond ASCII."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    return {} if "utf8" in named.lower().replace("-", "") else {"LC_ALL": "C.UTF-8"}


@contextmanager
def _environment(added: dict[str, str]) -> Iterator[None]:
    """Let processes that are started inside find `added` in their environment."""
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def hush(spark: SparkSession, name: str) -> None:
    """Let Spark say nothing while the query `name` is stopped: what a stop interrupts, it would print as errors."""
    with _HUSH_LOCK:
        _HUSHED.add(name)
        spark.sparkContext.setLogLevel("OFF")


def unhush(spark: SparkSession, name: str) -> None:
    """Let Spark speak again, unless another query of the session is being stopped."""
    with _HUSH_LOCK:
        _HUSHED.discard(name)
        if not _HUSHED:
            spark.sparkContext.setLogLevel("ERROR")


@contextmanager
def _filtered_stderr() -> Iterator[None]:
    """Let the JVM that is started inside write its standard error through a filter.

    Spark greets with a dozen lines, and prints two more with every stateful query, before any log
    level can be set. Errors and everything else come through.
    """
    reading, writing = os.pipe()
    ours = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_forward, args=(reading, ours), daemon=True, name="spark-stderr").start()
    try:
        yield
    finally:
        os.dup2(ours, 2)


def _forward(reading: int, out: int) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            if line.strip() and not any(noise in line for noise in _NOISE):
                os.write(out, line)
