"""What all tests share: UTC, one Spark session a worker, hypothesis profiles, and no silent skips on CI.

The settings at the top stand before any import of Polars or PySpark, which read them once.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    # Not at run time: most tests need no Spark, and importing it costs each worker half a second.
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

ROOT = Path(__file__).resolve().parent.parent
IS_CI = os.environ.get("CI") == "true"

os.environ["TZ"] = "UTC"
time.tzset()
# One thread for each worker, as there are more workers than cores; in `make long` two, so that code which leans on an
# order that Polars does not promise is seen to.
os.environ.setdefault("POLARS_MAX_THREADS", "2" if os.environ.get("HYPOTHESIS_PROFILE") == "long" else "1")
# JVMs that live for minutes (Spark, brokers, jobs to be killed) should start fast, not optimise. Without the last
# option Java reserves 48 MB for compiled code, which Spark's outgrows: it would discard methods and compile them again.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -XX:ReservedCodeCacheSize=240m"
)
# Spark's Python workers are this Python, and find `slackwater` and the functions of test modules by name.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
)

# No deadlines: a busy machine is no bug. Slow data generation is the machine's as well; and of few examples, many may
# happen to be filtered out.
settings.register_profile(
    "quick", deadline=None, max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
# On CI the same examples every time: a red run is the change's, not the dice's.
settings.register_profile("ci", settings.get_profile("quick"), derandomize=True, database=None, print_blob=True)
# What `make long` tries, and what one may try by hand.
settings.register_profile("long", settings.get_profile("quick"), max_examples=100)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IS_CI else "quick"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left alone with it at the end."""

    def turn(item: pytest.Item) -> int:
        marks = {mark.name for mark in item.iter_markers()}
        return 0 if marks & {"crash", "cluster"} else 1 if marks & {"spark", "kafka"} else 2

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Give modules to workers as `tests/scheduling.py` says."""
    from tests.scheduling import FromBothEnds

    return FromBothEnds(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what was imported and collected: it stays until the end."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let modules tidy up when they are unloaded."""
    gc.unfreeze()


class Needs(Protocol):
    """Skips the test unless `part` is there; on CI a missing part fails it."""

    def __call__(self, part: object, reason: str) -> None: ...


@pytest.fixture(scope="session")
def needs() -> Needs:
    """Call `needs(part, reason)` before using a real part (Java, a broker) that a machine may lack."""

    def check(part: object, reason: str) -> None:
        if part:
            return
        if IS_CI:
            pytest.fail(f"CI has every part, and this one is missing: {reason}")
        pytest.skip(reason)

    return check


def _connectors() -> dict[str, str]:
    """Return what a session with Kafka and Delta needs, nothing where Maven is missing: tests that need it say so."""
    from slackwater.base.errors import RunError
    from slackwater.connectors.delta.jars import delta_session_conf
    from slackwater.connectors.kafka.jars import connector_jars

    try:
        delta = delta_session_conf()
        jars = [*connector_jars(), delta.pop("spark.jars")]
    except RunError:
        return {}
    return {**delta, "spark.jars": ",".join(jars), "spark.databricks.delta.snapshotPartitions": "2"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> Iterator[SparkSession]:
    """Give this worker's one Spark session, made when the first test asks for it."""
    java = Path(os.environ["JAVA_HOME"], "bin/java") if "JAVA_HOME" in os.environ else shutil.which("java")
    needs(java and Path(java).exists(), "Spark needs Java 17 or newer (see scripts/preflight java)")

    from pyspark.sql import SparkSession

    from slackwater.spark.session_conf import session_conf

    folder = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -Duser.timezone=UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **_connectors(),
    }
    # A task that fails is not retried, so that a test of a failure meets it once.
    session = SparkSession.builder.config(map={**session_conf("local[2,1]", "tests", conf)}).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
