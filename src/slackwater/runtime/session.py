"""The Spark session, with what Slackwater needs of it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Final

from pyspark.sql import SparkSession

from slackwater.errors import fault

QUERY_CONF: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Large Arrow batches: the cost of a batch of rows is mostly per batch, not per row.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}
"""Settings of a query, made on the session while it is started and taken back afterwards."""

_SESSION_CONF: Final = {
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
}


def spark_session(*, master: str | None, name: str, conf: dict[str, str] | None = None) -> SparkSession:
    """Return the active session, or a new one on `master` (all local cores unless told otherwise)."""
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise fault("JAVA_MISSING")
    # Workers must run this very Python, whatever else is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName(f"slackwater {name}")
    settings: dict[str, Any] = {
        "spark.master": master or "local[*]",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        **_SESSION_CONF,
        **(conf or {}),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
