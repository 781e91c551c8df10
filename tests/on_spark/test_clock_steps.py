"""A job on a machine whose clock is set back by an hour, and later put right."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.spark import job as job_module
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.conftest import Needs
from tests.on_spark.jobs import record, stream, write_log

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
PIPELINE = """
import os, pathlib, time
import slackwater as sw

# The library breaks Python's own sleep, so it is for the JVM and its workers; the driver's clock is set back here.
os.environ["LD_PRELOAD"] = os.environ["LIBRARY"]
real, offset = time.time, pathlib.Path(os.environ["FAKETIME_TIMESTAMP_FILE"])
time.time = lambda: real() + float(offset.read_text())
rows = sw.stream("rows", sw.sources.log("data")).decode(sw.formats.json("k string, t long")).event_time("t")
early = sw.after_watermark(early=sw.every("2s"))
counts = rows.key_by("k").window(sw.tumbling("1h"), trigger=early).aggregate(n=sw.count())
pipeline = sw.Pipeline(
    "p", counts.to(sw.sinks.files("out", changelog=True)), counts.late.drop(), rows.dead_letters.drop(), key_groups=2
)
"""


def committed(folder: Path) -> int:
    found = (folder / ".slackwater" / "p" / "commits").glob("[0-9]*")
    return max((int(path.name) for path in found if path.name.isdigit()), default=-1)


def results(folder: Path) -> int:
    return sum(pl.read_parquet(path).height for path in (folder / "out").glob("batch-*/*.parquet"))


def write(folder: Path, number: int) -> None:
    data = folder / "data" / "0"
    data.mkdir(parents=True, exist_ok=True)
    (data / ".new").write_text(json.dumps({"k": "a", "t": 1_800_000_000_000}) + "\n")
    (data / ".new").rename(data / f"{number:020d}.jsonl")


def step_clock(folder: Path, seconds: str) -> None:
    """Set the clock of all processes of the job at once."""
    (folder / "new-time").write_text(seconds)
    (folder / "new-time").rename(folder / "time")


def until(process: subprocess.Popen[bytes], folder: Path, *, batches: int, rows: int, seconds: float) -> None:
    """Wait for more batches and results."""
    end = time.monotonic() + seconds
    while committed(folder) < batches or results(folder) < rows:
        said = (folder / "said.txt").read_text()[-3_000:]
        assert process.poll() is None, said
        assert time.monotonic() < end, f"{committed(folder)} batches, {results(folder)} results\n{said}"
        time.sleep(0.1)


@pytest.mark.long
def test_batches_and_triggers_do_not_wait_for_a_clock_that_was_set_back(tmp_path: Path, needs: Needs) -> None:
    needs(LIBRARY, "a clock is set back by libfaketime, a package of Debian and others")
    (tmp_path / "p.py").write_text(PIPELINE)
    step_clock(tmp_path, "+0")
    write(tmp_path, 0)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "LIBRARY": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "time"),
        # The JVM must see a step no later than the driver, which restarts the query once for each.
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # By default the library makes every timed wait on the monotonic clock return at once if it does not fake that
        # clock, too: all idle threads of the JVM then spin, and its start takes minutes.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }
    command = [sys.executable, "-m", "slackwater", "run", "p.py", "--master", "local[2]", "--trigger", "1s"]
    with (tmp_path / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=said, stderr=said)
    try:
        until(process, tmp_path, batches=3, rows=1, seconds=240)
        for number, step in enumerate(("-3600", "+0", "+3600"), start=1):
            step_clock(tmp_path, step)
            before = committed(tmp_path)
            write(tmp_path, number)
            until(process, tmp_path, batches=before + 8, rows=results(tmp_path) + 1, seconds=300)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
    clocks = tmp_path / ".slackwater" / "p" / "slackwater" / "clock"
    files = [clocks / str(batch) for batch in range(1, committed(tmp_path) + 1)]
    times = [int(re.findall(r"last_now_ms.*?(\d+)", file.read_text())[0]) for file in files]
    assert times == sorted(times), "processing time never went backwards"
    assert "Traceback" not in (tmp_path / "said.txt").read_text()


def test_a_query_is_started_again_between_two_batches_and_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    runs: set[str] = set()

    class Steps:
        """A clock that is set back once, after a batch."""

        def is_set_back(self) -> bool:
            if sink.rows().height:
                looks.append(1)
            return len(looks) == 1

    monkeypatch.setattr(job_module, "ClockSteps", Steps)
    write_log(tmp_path / "log", [[record(number, 1_000 * number, "a")] for number in range(3)])
    events, sink = stream(tmp_path / "log"), sw.sinks.memory()
    pipeline = sw.Pipeline("steps", events.to(sink), events.dead_letters.drop(), key_groups=2)

    def on_batch(_report: object) -> None:
        runs.add(str(job.query.runId))
        if len(runs) > 1 and sink.rows().height >= 3:
            job.stop()

    job = make_job(
        pipeline.plan(),
        RunOptions(spark=spark, checkpoint=tmp_path / "checkpoint", partitions=2, trigger="100ms", on_batch=on_batch),
    )
    job.run()
    assert len(runs) == 2
    assert sorted(sink.rows()["id"].to_list()) == [0, 1, 2]
