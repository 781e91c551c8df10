"""Delta tables for the tests: in folders of their own, by the worker's one Spark session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Needs
from tests.connectors.delta.tables import Lake


@pytest.fixture(scope="session")
def delta_spark(spark: SparkSession, needs: Needs) -> SparkSession:
    """Give the worker's session, which was started with Delta."""
    extensions = spark.conf.get("spark.sql.extensions", "") or ""
    needs("DeltaSparkSessionExtension" in extensions, "the session needs Delta's jars, which Maven fetches")
    return spark


@pytest.fixture
def lake(delta_spark: SparkSession, tmp_path: Path) -> Lake:
    """Give a folder of tables."""
    return Lake(spark=delta_spark, folder=tmp_path)
