"""What is loaded when: processes that need little of Slackwater, or of PySpark, do not wait for the rest."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import slackwater as sw
from slackwater.spark.daemon import LOADED

HEAVY = ("duckdb", "pandas", "polars", "pyarrow", "pyspark")


def loaded_by(code: str) -> set[str]:
    """Return which of the heavy packages a new process has loaded after `code`."""
    script = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_package_alone_loads_nothing() -> None:
    assert loaded_by("import slackwater") == set()


def test_process_that_learns_the_shape_of_the_state_loads_only_pyspark() -> None:
    assert loaded_by("import slackwater.spark.processor") == {"pyspark"}


def test_checks_before_spark_load_neither_pyspark_nor_pandas() -> None:
    assert not loaded_by("import slackwater.tools.cli.main, slackwater.spark.start") & {"pyspark", "pandas"}


@pytest.mark.parametrize("name", sw.__all__)
def test_public_name_is_found_and_kept(name: str) -> None:
    vars(sw).pop(name, None)
    found = getattr(sw, name)
    assert vars(sw)[name] is found
    assert name in dir(sw)


def test_public_name_is_the_one_of_its_module() -> None:
    assert sw.stream is importlib.import_module("slackwater.plan.streams").stream
    assert sw.testing is importlib.import_module("slackwater.testing")


def test_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'slackwater' has no attribute 'strean'"):
        _ = sw.strean


@pytest.mark.parametrize("name", LOADED)
def test_daemon_loads_what_exists(name: str) -> None:
    importlib.import_module(name)
