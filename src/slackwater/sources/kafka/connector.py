"""Spark's Kafka connector: its jars, for the Spark that is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pyspark

from slackwater.ground.jars import jars

# Spark's patch releases change nothing that it uses; not every mirror has a connector for each of them.
_CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
# Delegation tokens, of which nothing changed since; not every mirror has the newer ones.
_TOKENS: Final = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0"
_VERSION: Final = re.compile(r"-\d[\w.]*$")


def connector_jars() -> list[str]:
    """Return the jars that Spark lacks to read Kafka, fetched when they are first needed."""
    present = {_artifact(path) for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    fetched = sorted(jars((_CONNECTOR, _TOKENS), pinned=(_TOKENS,)).glob("*.jar"))
    return [str(path) for path in fetched if _artifact(path) not in present]


def _artifact(path: Path) -> str:
    return _VERSION.sub("", path.stem)
