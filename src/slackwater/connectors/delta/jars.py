"""Spark's Delta connector: its jars, and the session settings that it needs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.errors import fault, refuse
from slackwater.base.folders import given_path, without_scheme
from slackwater.base.secrets import holds_credentials, shown_url
from slackwater.connectors.spark_jars import connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK: Final = "4.2.0"
_CONNECTOR: Final = ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
_CLASS: Final = "io.delta.tables.DeltaTable"
_SESSION: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Every commit with a transaction number makes Delta read the table's state, in 50 tasks by default.
_STATE_PARTITIONS: Final = "spark.databricks.delta.snapshotPartitions"
_REMOTE: Final = re.compile(r"[a-z][a-z0-9+.-]*://.", re.IGNORECASE)


def delta_jars() -> list[str]:
    """Return the jars that Spark lacks for Delta tables, downloaded on first use."""
    return connector("Delta", _CONNECTOR, spark=_SPARK)


def delta_session_conf() -> dict[str, str]:
    """Return the settings that a session must be started with; they cannot be set later."""
    return {"spark.jars": ",".join(delta_jars()), **_SESSION, _STATE_PARTITIONS: "8"}


def delta_path(path: str | os.PathLike[str], *, what: str) -> str:
    """Return a table's location: an absolute local path, or a URI unchanged, since only Spark accesses it."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise refuse("DELTA_PATH", what=what, got=repr(path))
    place = without_scheme(str(path))
    # Azure's URIs have a container before the @; in S3's, it would be an access key.
    if "://" in place and (holds_credentials(place) or (place.lower().startswith("s3") and "@" in place)):
        raise refuse("DELTA_PATH_CREDENTIALS", what=what, got=shown_url(place))
    return place.rstrip("/") if _REMOTE.match(place) else str(given_path(place).absolute())


def delta_session() -> SparkSession:
    """Return the current session; raise a fault with a remedy if it does not support Delta tables."""
    from pyspark import SparkContext  # noqa: PLC0415  needs Spark, which definitions do not
    from pyspark.sql import SparkSession  # noqa: PLC0415  needs Spark, which definitions do not

    spark = SparkSession.getActiveSession()
    if spark is None:
        if SparkContext._active_spark_context is None:  # noqa: SLF001  to check without starting one
            raise fault("DELTA_NO_SPARK")
        spark = SparkSession.Builder().getOrCreate()
    check_delta_session(spark)
    return spark


def own_session(spark: SparkSession) -> SparkSession:
    """Return a session with its own copy of `spark`'s settings; everything else is shared.

    A merge takes its transaction number from the session's settings, so merges that share them would mix up theirs.
    """
    return type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001  no public way


def check_delta_session(spark: SparkSession) -> None:
    """Refuse a session that was started without Delta."""
    lacking = [name for name, value in _SESSION.items() if value not in (spark.conf.get(name, "") or "").split(",")]
    if not jvm(spark).org.apache.spark.util.Utils.classIsLoadable(_CLASS):
        lacking.append("the connector's jars")
    if lacking:
        lines = "".join(f'\n    .config("{name}", "{value}")' for name, value in _SESSION.items())
        packages = f'\n    .config("spark.jars.packages", "{_CONNECTOR[0]}")'
        raise fault("DELTA_SESSION", lacking=" and ".join(lacking), lines=lines + packages)


def jvm(spark: SparkSession) -> Any:  # noqa: ANN401  Java has no types here
    """Return the JVM, for Delta's own API."""
    return spark._jvm  # noqa: SLF001  no public way
