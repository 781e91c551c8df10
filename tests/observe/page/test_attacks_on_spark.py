"""A job on Spark whose page and metrics are attacked: it delivers all that arrives meanwhile."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.observe.page.attacked import HOSTILE, MOST_DESCRIPTORS
from tests.observe.page.attacks import NORMAL, SLOW, fuzzed, many_sockets, normal_clients, slow_clients

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]
ROOT = Path(__file__).resolve().parents[3]
PIPELINE = """
import slackwater as sw
events = sw.stream("events", sw.sources.log("log")).decode(sw.formats.json("id long, text string, t long"))
events = events.event_time("t")
ends = events.to(sw.sinks.files("out", format="json")), events.dead_letters.to(sw.sinks.files("dead", format="json"))
pipeline = sw.Pipeline("attacked", *ends)
"""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def write(folder: Path, first: int) -> None:
    """Add a file with ten events, one of them a megabyte long, and one that is broken."""
    texts = [HOSTILE.replace("\ud800", ""), "x" * 1_000_000, *("",) * 8]
    lines = [json.dumps({"id": first + at, "text": text, "t": first + at}) for at, text in enumerate(texts)]
    (folder / f".{first}").write_text("\n".join([*lines, '{"id": <b>broken</b>']) + "\n")
    (folder / f".{first}").rename(folder / f"{first:06}.jsonl")


def delivered(folder: Path) -> int:
    return len(set(re.findall(r'"id":\s*(\d+)', "".join(path.read_text() for path in folder.rglob("*.json*")))))


def test_job_delivers_all_while_its_page_is_attacked(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    log = tmp_path / "log" / "0"
    log.mkdir(parents=True)
    write(log, 0)
    command = [sys.executable, "-m", "slackwater", "run", "pipeline.py", "--master", "local[2]", "--trigger", "0s"]
    process = subprocess.Popen(
        [*command, "--page", "--metrics-port", "0", "--show-data", "--checkpoint", str(tmp_path / "checkpoint")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limited,  # noqa: PLW1509  no thread of this test holds a lock
    )
    assert process.stderr is not None
    log_lines: list[str] = []
    reading = threading.Thread(target=log_lines.extend, args=(process.stderr,))
    try:
        ports: list[int] = []
        for line in process.stderr:
            ports += [int(port) for port in re.findall(r"http://127\.0\.0\.1:(\d+)", line)]
            if len(ports) == 2:
                break
        reading.start()
        wait_for(process, tmp_path / "out", 10)
        with many_sockets():
            for number, port in enumerate(ports):
                with slow_clients(port, SLOW):
                    write(log, 10 * (number + 1))
                    assert normal_clients(port, NORMAL, ("/metrics",)) == [200] * NORMAL
                    wait_for(process, tmp_path / "out", 10 * (number + 2))
                assert b"500" not in fuzzed(port, 5_000, seed=number)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.wait()
        reading.join()
        process.stderr.close()
    assert len("".join(log_lines)) < 20_000


def wait_for(process: subprocess.Popen[str], folder: Path, events: int) -> None:
    while delivered(folder) < events:
        assert process.poll() is None
        threading.Event().wait(0.2)
