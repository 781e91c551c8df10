"""A batch's rows as a Spark DataFrame: all of them to append, the last one of each key to merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from slackwater.connectors.sink import SinkBatch
from slackwater.formats.schemas import quoted, to_arrow, to_spark_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ORDER: Final = "__order"
_LAST: Final = "__last"


def batch_frame(spark: SparkSession, batch: SinkBatch, keys: Sequence[str]) -> DataFrame:
    """Return a batch's rows; with `keys`, only the last row of each key.

    A small batch is already on the driver, in order, and becomes one file; a large one is written by the executors
    without passing through the driver.
    """
    if batch.spark_frame is not None and batch.in_parallel is not None:
        frame: DataFrame = batch.spark_frame()
        return _last(frame, keys) if keys else frame
    rows = pl.concat([batch.schema.to_frame(), *batch.frames()])
    if keys:
        rows = rows.unique(list(keys), keep="last", maintain_order=True)
    return local_frame(spark, rows)


def local_frame(spark: SparkSession, rows: pl.DataFrame) -> DataFrame:
    """Return rows from the driver as a DataFrame with one partition."""
    if rows.is_empty():
        # PySpark cannot convert an empty nested column from Arrow.
        return spark.createDataFrame([], to_spark_ddl(rows.schema)).coalesce(1)
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(to_arrow(rows.schema))
    return spark.createDataFrame(table, to_spark_ddl(rows.schema)).coalesce(1)


def _last(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the last row of each key.

    The rows of one key and window are in one key group, therefore in one partition, in the order of the changes; row
    numbers increase along a partition. They are assigned before any shuffle.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415  PySpark's own convention

    columns = [F.col(quoted(name)) for name in frame.columns]
    numbered = frame.withColumn(_ORDER, F.monotonically_increasing_id())
    last = F.max_by(F.struct(*columns), _ORDER).alias(_LAST)
    return numbered.groupBy(*(F.col(quoted(key)) for key in keys)).agg(last).select(f"{_LAST}.*")
