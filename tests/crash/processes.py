"""A job in a process of its own, that can be killed like a process can: without warning, anywhere in its tree."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import psutil

from slackwater.spark.jvm import SHORT_OPTIONS

ROOT: Final = Path(__file__).resolve().parents[2]
PIPELINES: Final = ROOT / "tests" / "crash"
Victim = Literal["driver", "jvm", "worker", "everything", "connection", "server"]
_MOST_SECONDS: Final = 600


@dataclass(kw_only=True)
class Started:
    """A started job."""

    process: subprocess.Popen[bytes]
    folder: Path
    until: float = field(default_factory=lambda: time.monotonic() + _MOST_SECONDS)

    @classmethod
    def start(
        cls,
        folder: Path,
        log: Path,
        *,
        pipeline: str,
        master: str | None,
        points: Collection[str],
        sink: tuple[str, str],
        slots: bool,
    ) -> Started:
        """Start the job that lives in `folder` and writes to a sink of some kind at some address.

        It stands still at each of the `points`, once. With `slots`, every batch is large enough for the executors.
        """
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "CRASH_LOG": str(log),
            "CRASH_OUT": str(folder / "out"),
            "CRASH_SINK": sink[0],
            "CRASH_ADDRESS": sink[1],
            "CRASH_PLACE": folder.name,
            "CRASH_SLOTS": "1" if slots else "",
            "JDK_JAVA_OPTIONS": SHORT_OPTIONS,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "SLACKWATER_CRASH": " ".join(points),
            "SLACKWATER_CRASH_ONCE": str(folder / "struck"),
            "SLACKWATER_CRASH_SIGNAL": "STOP",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [
            sys.executable,
            "-m",
            "slackwater",
            "run",
            str(PIPELINES / pipeline),
            "--bounded",
            *(() if master is None else ("--master", master)),
        ]
        with (folder / "output.txt").open("ab") as output:
            process = subprocess.Popen(
                [*command, "--checkpoint", str(folder / "checkpoint")],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
            )
        return cls(process=process, folder=folder)

    def ended(self) -> int | None:
        """Return the code that the process has ended with, None while it runs; a job that hangs is an error."""
        code = self.process.poll()
        if code is None and time.monotonic() > self.until:
            self.kill("everything", random.Random(0))
            message = f"a job has not ended in {_MOST_SECONDS} s:\n{self.last_words()}"
            raise AssertionError(message)
        return code

    def standing_at(self, point: str) -> psutil.Process | None:
        """Return the process that stands still at a point, if one does."""
        try:
            holder = psutil.Process(int((self.folder / "struck" / point).read_text()))
            return holder if holder.status() == psutil.STATUS_STOPPED else None
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return None

    def kill(self, victim: Victim, dice: random.Random, holder: psutil.Process | None = None) -> bool:
        """Kill part of the process tree, of its workers rather the `holder`; return whether there was such a part."""
        try:
            children = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return False
        jvms = [child for child in children if _runs(child, "java")]
        workers = [child for child in children if _runs(child, "pyspark.worker") and _is_forked(child)]
        victims: dict[Victim, list[int]] = {
            "driver": [self.process.pid],
            "jvm": [child.pid for child in jvms],
            "worker": [worker.pid for worker in [holder if holder in workers else _chosen(workers, dice)] if worker],
            "everything": [self.process.pid, *(child.pid for child in children)],
            "connection": [],
            "server": [],  # neither is of this tree
        }
        return sum(_killed(pid) for pid in victims[victim]) > 0

    def since_batch(self, batch: int) -> float:
        """Return how many seconds ago Spark has begun a batch, a negative number if it has not."""
        try:
            return time.time() - (self.folder / "checkpoint" / "offsets" / str(batch)).stat().st_mtime
        except FileNotFoundError:
            return -1.0

    def last_words(self) -> str:
        """Return the end of what the job said."""
        return (self.folder / "output.txt").read_text(errors="replace")[-6_000:]


def _runs(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline()[:4])
    except psutil.Error:
        return False


def _chosen(workers: Sequence[psutil.Process], dice: random.Random) -> psutil.Process | None:
    return dice.choice(workers) if workers else None


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
