"""The settings of a new Spark session and the start of its JVM; this module does not import PySpark."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from typing import Final

from slackwater.base.errors import fault
from slackwater.base.open_files import check_open_files
from slackwater.spark.jvm import SHORT_OPTIONS, Jvm, is_jvm_there, utf8

WORKER_ENV: Final = {
    "POLARS_MAX_THREADS": "1",
    # Workers keep the memory that every batch needs. Returning and requesting it again takes a third of FRONT's time.
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    # Never return memory (-1): in a forked process, with any delay, blocks of 8 MB and more are returned immediately.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
}
"""The environment variables of workers."""

_SESSION_CONF: Final = {
    **{f"spark.executorEnv.{name}": value for name, value in WORKER_ENV.items()},
    "spark.python.daemon.module": "slackwater.spark.daemon",
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",  # as in QUERY_CONF
}
_ONE_TRY: Final = re.compile(r"local(?:\[\s*([0-9]+|\*)\s*\])?")
_TRIES: Final = 4
"""How often a task is tried before its batch fails: the same number as on a cluster."""
_MASTER: Final = re.compile(r"local(\[[^\]]+\]|-cluster\[[^\]]+\])?|spark://.+|k8s://.+|yarn")


def check_master(master: str | None) -> None:
    """Reject a master URL that Spark does not know."""
    if master is not None and not _MASTER.fullmatch(master):
        raise fault("SPARK_MASTER", got=master)


def with_retries(master: str | None) -> str:
    """Return a master on which a failed task is retried; `local[N,F]` keeps its number of failures.

    On `local[N]`, Spark never retries, whatever `spark.task.maxFailures` is: one killed worker would end the job.
    """
    match = _ONE_TRY.fullmatch(master or "local[*]")
    return (master or "") if match is None else f"local[{match[1] or 1},{_TRIES}]"


def start_jvm(*, master: str | None, name: str, conf: Mapping[str, str], is_short: bool) -> Jvm | None:
    """Start the JVM of a later session; None if one is running. `is_short` is for runs that take seconds."""
    if is_jvm_there():
        return None
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise fault("JAVA_MISSING")
    check_open_files()
    return Jvm.start(session_conf(master, name, conf), options=SHORT_OPTIONS if is_short else "")


def session_conf(master: str | None, name: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a new session; `conf` overrides the defaults."""
    return {
        "spark.app.name": f"slackwater {name}",
        "spark.master": with_retries(master),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        **_SESSION_CONF,
        **{f"spark.executorEnv.{name}": value for name, value in utf8().items()},
        **conf,
    }
