"""On a real cluster of two workers, an executor that dies in mid-batch changes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from slackwater.spark.jvm import SHORT_OPTIONS
from tests.cluster.standalone import ROOT, standalone
from tests.conftest import Needs
from tests.crash.log import write_large_log
from tests.on_spark.jobs import MINUTE, record, write_log

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def drive(driver: str, folder: Path) -> None:
    """Run a driver over the log in `folder`, on a cluster of its own."""
    with standalone(folder / "cluster") as master:
        ended = subprocess.run(
            [sys.executable, str(ROOT / "tests" / "cluster" / driver), master, folder / "log", folder / "out"],
            env={
                **os.environ,
                "JDK_JAVA_OPTIONS": SHORT_OPTIONS,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr[-6_000:]


@pytest.mark.long
def test_rule_16_lost_executor_recomputes_large_outputs_into_the_same_slots(tmp_path: Path, needs: Needs) -> None:
    needs(shutil.which("java") or "JAVA_HOME" in os.environ, "Spark needs Java 17 or newer")
    write_large_log(tmp_path / "log")
    drive("slots_driver.py", tmp_path)
    before, after = json.loads((tmp_path / "out" / "slots.json").read_text())
    assert before == after
    assert len(before) == 2
    assert all(rows > 100_000 for rows, _ in before.values())


def test_rule_16_lost_executor_with_cached_blocks_does_not_change_the_results(tmp_path: Path, needs: Needs) -> None:
    needs(shutil.which("java") or "JAVA_HOME" in os.environ, "Spark needs Java 17 or newer")
    wanted: dict[tuple[str, int], list[int]] = defaultdict(list)
    for part, partition in enumerate("01"):
        files = []
        for minute in range(3):
            made = [(1_000 * part + 100 * minute + n, minute * MINUTE + n, f"user-{n % 10}") for n in range(50)]
            files.append([record(id_, ts, k, 0.5) for id_, ts, k in made])
            for id_, _, k in made:
                wanted[k, minute].append(id_)
        write_log(tmp_path / "log", files, partition=partition)
    drive("driver.py", tmp_path)
    [killed] = (tmp_path / "out" / "killed").read_text().splitlines()
    assert re.fullmatch(r"executor \d+ with [12] blocks and 10 rows wanted", killed)
    shown = pl.read_parquet(tmp_path / "out" / "results.parquet")
    found = {
        (k, round(start.timestamp() * 1_000) // MINUTE): (n, total, sorted(ids))
        for k, start, n, total, ids in shown.select("k", "window_start", "n", "total", "ids").iter_rows()
    }
    assert found == {place: (len(ids), 0.5 * len(ids), sorted(ids)) for place, ids in wanted.items()}
    assert shown.height == len(wanted)
    assert not list((tmp_path / "out" / "late").glob("batch-*"))
