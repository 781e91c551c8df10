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

from tests.conftest import Needs

pytestmark = [pytest.mark.spark, pytest.mark.long]
ROOT = Path(__file__).resolve().parents[2]
LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
PIPELINE = """
import slackwater as sw

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


def until(process: subprocess.Popen[bytes], folder: Path, *, batches: int, rows: int, seconds: float) -> None:
    """Wait for more batches and results."""
    end = time.monotonic() + seconds
    while committed(folder) < batches or results(folder) < rows:
        said = (folder / "said.txt").read_text()[-3_000:]
        assert process.poll() is None, said
        assert time.monotonic() < end, f"{committed(folder)} batches, {results(folder)} results\n{said}"
        time.sleep(0.1)


def test_batches_and_triggers_do_not_wait_for_a_clock_that_was_set_back(tmp_path: Path, needs: Needs) -> None:
    needs(LIBRARY, "a clock is set back by libfaketime, a package of Debian and others")
    (tmp_path / "p.py").write_text(PIPELINE)
    (tmp_path / "time").write_text("+0")
    write(tmp_path, 0)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "time"),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    command = [sys.executable, "-m", "slackwater", "run", "p.py", "--master", "local[2]", "--trigger", "1s"]
    with (tmp_path / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=said, stderr=said)
    try:
        until(process, tmp_path, batches=3, rows=1, seconds=240)
        for number, step in enumerate(("-3600", "+0", "+3600"), start=1):
            (tmp_path / "time").write_text(step)
            before = committed(tmp_path)
            write(tmp_path, number)
            until(process, tmp_path, batches=before + 8, rows=results(tmp_path) + 1, seconds=120)
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
