"""What a Spark session is started with, and the JVM it will be made in; nothing here loads PySpark."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from typing import Final

from slackwater.errors import fault
from slackwater.spark.jvm import SHORT_OPTIONS, Jvm, is_jvm_there, utf8

WORKER_ENV: Final = {
    "POLARS_MAX_THREADS": "1",
    # Workers keep the memory they need in every batch. Given back and asked for again, it costs a third of FRONT.
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    # Never, not late: in a forked process any delay means that blocks of 8 MB and more are given back at once.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
}
"""What workers find in their environment."""

_SESSION_CONF: Final = {
    **{f"spark.executorEnv.{name}": value for name, value in WORKER_ENV.items()},
    "spark.python.daemon.module": "slackwater.spark.daemon",
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",  # as a query's
}
_MASTER: Final = re.compile(r"local(\[[^\]]+\]|-cluster\[[^\]]+\])?|spark://.+|k8s://.+|yarn")


def check_master(master: str | None) -> None:
    """Refuse what no Spark can be started on."""
    if master is not None and not _MASTER.fullmatch(master):
        raise fault("SPARK_MASTER", got=master)


def start_jvm(*, master: str | None, name: str, conf: Mapping[str, str], is_short: bool) -> Jvm | None:
    """Start the JVM of a session to come; None if there is one. `is_short` for runs that are over in seconds."""
    if is_jvm_there():
        return None
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise fault("JAVA_MISSING")
    return Jvm.start(session_conf(master, name, conf), options=SHORT_OPTIONS if is_short else "")


def session_conf(master: str | None, name: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session of ours; those in `conf` replace others."""
    return {
        "spark.app.name": f"slackwater {name}",
        "spark.master": master or "local[*]",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        **_SESSION_CONF,
        **{f"spark.executorEnv.{name}": value for name, value in utf8().items()},
        **conf,
    }
