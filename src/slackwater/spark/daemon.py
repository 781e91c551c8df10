"""Spark's Python daemon with Slackwater loaded before it forks, so that a new worker starts at once.

A worker would otherwise spend its first second importing. Nothing is run here that starts threads:
Polars and DuckDB begin theirs when first used, after the fork.
"""

import gc
import os

from pyspark import daemon

import slackwater.spark.worker  # noqa: F401  loaded for the workers to come

if __name__ == "__main__":
    # Spark collects garbage after every task; what was loaded before the fork is none, and is most of what there is.
    os.register_at_fork(after_in_child=gc.freeze)
    daemon.manager()
