"""Starting Spark's Python processes while the first query is still being planned.

Spark starts them when the first task needs one, and the task waits for their imports.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def warm_up(spark: SparkSession) -> threading.Thread:
    """Run a tiny job in the background; the query does not depend on its outcome."""
    thread = threading.Thread(target=_run, args=(spark,), daemon=True, name="slackwater-warm-up")
    thread.start()
    return thread


def _run(spark: SparkSession) -> None:
    with suppress(Exception):
        spark.range(0, 1, 1, 1).mapInArrow(_as_it_is, "id long").toArrow()


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
