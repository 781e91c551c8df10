"""Two incidents that need a real driver: a job that dies in its first batch every time, and a sink that is slow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.prometheus import Collector, exposition
from slackwater.observe.monitoring.rules_file import RULES, rules_file
from slackwater.observe.monitoring.thresholds import Thresholds
from tests.conftest import Needs
from tests.observe.monitoring.caused import Scrapes
from tests.observe.monitoring.promtool import fired, needs_promtool
from tests.on_spark.jobs import MINUTE, record, run, stream, write_log

pytestmark = [pytest.mark.long, pytest.mark.spark]

BROKEN = """
import slackwater as sw

def write(rows, batch):
    raise RuntimeError("the store is broken")

events = sw.stream("events", sw.sources.log("log")).decode(sw.formats.json("k string, ts long")).event_time("ts")
pipeline = sw.Pipeline("shop", events.to(sw.sinks.foreach_batch(write)), events.dead_letters.drop(), key_groups=2)
"""


def written(folder: Path, limits: Thresholds) -> Path:
    path = folder / RULES
    path.write_text(rules_file(pipeline=None, checkpoints=".slackwater", limits=limits))
    return path


def scraped_until_it_dies(folder: Path) -> str | None:
    """Start the job and scrape it for as long as it lives; returns the last that was seen of it."""
    command = [sys.executable, "-m", "slackwater", "run", "pipeline.py", "--metrics-port", "0", "--master", "local[1]"]
    seen, address = None, ""
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT) as job,
    ):
        until = time.monotonic() + 120
        while job.poll() is None and time.monotonic() < until:
            if not address:
                address = "".join(re.findall(r"http://127\.0\.0\.1:\d+/metrics", (folder / "said").read_text())[:1])
            try:
                with urllib.request.urlopen(address or "http://127.0.0.1:1", timeout=5) as answer:  # noqa: S310  our own
                    seen = answer.read().decode() or seen
            except OSError:
                pass
            time.sleep(0.05)
        job.kill()
    assert "the store is broken" in (folder / "said").read_text()
    return seen


def test_job_that_dies_in_its_first_batch_again_and_again_is_a_crash_loop(tmp_path: Path, needs: Needs) -> None:
    needs_promtool(needs)
    needs(shutil.which("java") or "JAVA_HOME" in os.environ, "Spark needs Java 17 or newer")
    write_log(tmp_path / "log", [[record(1, MINUTE)]])
    (tmp_path / "pipeline.py").write_text(BROKEN)
    scrapes = Scrapes()
    for _ in range(3):
        scrapes.take(scraped_until_it_dies(tmp_path))
    rules = written(tmp_path, Thresholds(restarts=2))
    assert fired(rules, {"shop": scrapes.series}, minutes=5) == {"shop": {"SlackwaterCrashLoop"}}


def test_sink_that_is_slow_is_seen_in_the_figures_of_the_job(spark: SparkSession, tmp_path: Path, needs: Needs) -> None:
    needs_promtool(needs)
    write_log(tmp_path / "log", [[record(number, number * MINUTE)] for number in range(3)])

    def write(rows: DataFrame, batch: int) -> None:
        time.sleep(1.2)

    events = stream(tmp_path / "log")
    pipeline = sw.Pipeline("shop", events.to(sw.sinks.foreach_batch(write)), events.dead_letters.drop(), key_groups=2)
    collector, scrapes = Collector(), Scrapes()

    def look(live: Live) -> None:
        collector.note(live)
        if live.last.rows:
            for _ in range(5):  # a batch takes minutes, and Prometheus comes every minute
                scrapes.take(exposition(collector).decode())

    run(spark, pipeline, tmp_path / "checkpoint", on_record=look)
    # The rows are of 1970 and Prometheus' tool is as well, the job is of today: its last batch is in the future.
    rules = written(tmp_path, Thresholds(slow_sink_ms=1_000))
    assert fired(rules, {"shop": scrapes.series, "kept": {}}, minutes=14) == {
        "shop": {"SlackwaterSinkSlow"},
        "kept": set(),
    }
    patient = written(tmp_path, Thresholds(slow_sink_ms=30_000))
    assert fired(patient, {"shop": scrapes.series}, minutes=14) == {"shop": set()}
