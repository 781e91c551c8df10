"""A job in a process of its own, that can be killed like a process can: without warning, anywhere in its tree."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import psutil

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PIPELINE: Final = ROOT / "tests" / "crash" / "pipeline.py"
Victim = Literal["driver", "jvm", "worker", "everything", "server"]
_MOST_SECONDS: Final = 600
_QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""A JVM that lives for seconds should not compile for hours."""


@dataclass(kw_only=True)
class Started:
    """A started job."""

    process: subprocess.Popen[bytes]
    folder: Path

    @classmethod
    def start(
        cls, folder: Path, log: Path, *, master: str, point: str | None, once: Path, sink: tuple[str, str]
    ) -> Started:
        """Start the job that lives in `folder` and writes to a sink of some kind at some address.

        It is told to die at `point` unless the file `once` exists.
        """
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "CRASH_LOG": str(log),
            "CRASH_OUT": str(folder / "out"),
            "CRASH_SINK": sink[0],
            "CRASH_ADDRESS": sink[1],
            "CRASH_PLACE": folder.name,
            "JDK_JAVA_OPTIONS": _QUICK_JVM,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "SLACKWATER_CRASH_ONCE": str(once),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        environment.pop("SLACKWATER_CRASH", None)
        if point is not None:
            environment["SLACKWATER_CRASH"] = point
        command = [sys.executable, "-m", "slackwater", "run", str(PIPELINE), "--bounded", "--master", master]
        with (folder / "output.txt").open("ab") as output:
            process = subprocess.Popen(
                [*command, "--checkpoint", str(folder / "checkpoint")],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
            )
        return cls(process=process, folder=folder)

    def ended(self, *, until_batch: int | None = None) -> int | None:
        """Wait until the process has ended and return its code, or until Spark begins a batch and return None."""
        until = time.monotonic() + _MOST_SECONDS
        while until_batch is None or self.batch_begun() < until_batch:
            try:
                return self.process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    self.kill("everything", random.Random(0))
                    raise
        return None

    def kill(self, victim: Victim, dice: random.Random) -> bool:
        """Kill part of the process tree; returns whether there was such a part."""
        try:
            children = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return False
        jvms = [child for child in children if _runs(child, "java")]
        workers = [child for child in children if _runs(child, "pyspark.worker") and _is_forked(child)]
        victims: dict[Victim, list[int]] = {
            "driver": [self.process.pid],
            "jvm": [child.pid for child in jvms],
            "worker": [dice.choice(workers).pid] if workers else [],
            "everything": [self.process.pid, *(child.pid for child in children)],
            "server": [],  # not of this tree
        }
        return sum(_killed(pid) for pid in victims[victim]) > 0

    def batch_begun(self) -> int:
        """Return the newest batch that Spark has begun, -1 if there is none."""
        offsets = self.folder / "checkpoint" / "offsets"
        names = [path.name for path in offsets.iterdir()] if offsets.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def last_words(self) -> str:
        """Return the end of what the job said."""
        return (self.folder / "output.txt").read_text(errors="replace")[-6_000:]


def _runs(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline()[:4])
    except psutil.Error:
        return False


def _is_forked(process: psutil.Process) -> bool:
    """Whether this is a worker, forked from the daemon that Spark started."""
    try:
        parent = process.parent()
        return parent is not None and _runs(parent, "pyspark.worker")
    except psutil.Error:
        return False


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
