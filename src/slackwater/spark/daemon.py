"""Spark's Python daemon with Slackwater loaded before it forks, so that new workers start immediately.

Otherwise a worker would spend its first second on imports. Nothing here may start threads: Polars and DuckDB start
theirs on first use, after the fork.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module

from pyspark import daemon

LOADED = (
    "slackwater.spark.worker",
    "slackwater.windows",
    "slackwater.operators.aggregates",
    "slackwater.operators.windows.triggers",
    "pyspark.worker",
    # Modules that PySpark imports inside functions, when a task calls them.
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.testing.utils",
    "pyarrow.pandas_compat",
)
"""The modules loaded before the fork."""

if __name__ == "__main__":
    for name in LOADED:
        with suppress(ImportError):  # raised again by the code that needs the module
            import_module(name)
    # Spark collects garbage after every task; objects loaded before the fork are most of the heap and never garbage.
    os.register_at_fork(after_in_child=gc.freeze)
    daemon.manager()
