"""Spark's Python daemon with Slackwater loaded before it forks, so that a new worker starts at once.

A worker would otherwise spend its first second importing. Nothing is run here that starts threads:
Polars and DuckDB begin theirs when first used, after the fork.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module

from pyspark import daemon

LOADED = (
    "slackwater.spark.worker",
    "slackwater.windows",
    "slackwater.aggregates",
    "slackwater.triggers",
    "pyspark.worker",
    # What PySpark loads inside of its functions, when a task calls them.
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.testing.utils",
    "pyarrow.pandas_compat",
)
"""What workers find loaded."""

if __name__ == "__main__":
    for name in LOADED:
        with suppress(ImportError):  # the code that needs it raises
            import_module(name)
    # Spark collects garbage after every task; what was loaded before the fork is most of the heap, and never garbage.
    os.register_at_fork(after_in_child=gc.freeze)
    daemon.manager()
