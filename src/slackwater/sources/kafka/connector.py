"""Spark's Kafka connector: its jars, for the Spark that is installed."""

from __future__ import annotations

from typing import Final

from slackwater.ground.connectors import connector

# Spark's patch releases change nothing that it uses; not every mirror has a connector for each of them.
_SPARK: Final = "4.2.0"
_CONNECTOR: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_SPARK}"
# Delegation tokens, of which nothing changed since; not every mirror has the newer ones.
_TOKENS: Final = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0"


def connector_jars() -> list[str]:
    """Return the jars that Spark lacks to read Kafka, fetched when they are first needed."""
    return connector("Kafka", (_CONNECTOR,), spark=_SPARK, pinned=(_TOKENS,))
