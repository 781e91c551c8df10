"""Spark's Kafka connector: its jars, for the installed Spark."""

from __future__ import annotations

from typing import Final

from slackwater.connectors.spark_jars import connector

# The connector does not depend on Spark's patch release, and not every mirror has one for each.
_SPARK: Final = "4.2.0"
_CONNECTOR: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_SPARK}"
# Delegation tokens, unchanged since; not every mirror has newer versions.
_TOKENS: Final = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0"


def connector_jars() -> list[str]:
    """Return the jars that Spark needs to read Kafka, downloaded when first needed."""
    return connector("Kafka", (_CONNECTOR,), spark=_SPARK, pinned=(_TOKENS,))
