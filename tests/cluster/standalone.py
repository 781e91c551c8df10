"""A real standalone cluster on this machine, from the jars that PySpark brings: a master and two workers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import psutil
import pyspark

from slackwater.spark.jvm import SHORT_OPTIONS

ROOT: Final = Path(__file__).resolve().parents[2]
HOME: Final = Path(pyspark.__file__).parent
_HOST: Final = "127.0.0.1"
_MOST_SECONDS: Final = 120


@contextmanager
def standalone(folder: Path, *, workers: int = 2) -> Iterator[str]:
    """Start a cluster whose workers have one core each, and give its address; leaves no process behind."""
    port, page = _free_port(), _free_port()
    address = f"spark://{_HOST}:{port}"
    common = ["--host", _HOST]
    with ExitStack() as stack:
        master = [*common, "--port", str(port), "--webui-port", str(page)]
        stack.enter_context(_daemon("org.apache.spark.deploy.master.Master", master, folder / "master"))
        worker = [*common, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        for number in range(workers):
            place = folder / f"worker-{number}"
            arguments = [*worker, "--work-dir", str(place), address]
            stack.enter_context(_daemon("org.apache.spark.deploy.worker.Worker", arguments, place))
        _wait_for_workers(page, workers, folder)
        yield address


@contextmanager
def _daemon(name: str, arguments: list[str], folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "SPARK_DAEMON_JAVA_OPTS": SHORT_OPTIONS,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": _HOST,
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), name, *arguments], env=environment, stdout=output, stderr=output
        )
    try:
        yield
    finally:
        # Executors are the worker's children, Python workers theirs.
        family = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
        for pid in family:
            if psutil.pid_exists(pid):
                psutil.Process(pid).kill()
        process.wait()


def _wait_for_workers(page: int, workers: int, folder: Path) -> None:
    until = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{page}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == workers:
                    return
        except (OSError, ValueError):
            pass  # not up yet, or up without its list of workers: another page answers then
        time.sleep(0.1)
    said = "\n".join(path.read_text(errors="replace")[-2_000:] for path in folder.glob("*/output.txt"))
    message = f"the cluster did not come up:\n{said}"
    raise AssertionError(message)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
