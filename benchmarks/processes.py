"""What the processes of a run use: the memory of Spark's Python workers, and CPU time.

Other work on the machine disturbs CPU time less than it does the clock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import psutil

_SAMPLE_EVERY_S: Final = 0.05
_SAMPLES_PER_SEARCH: Final = 20


@dataclass(kw_only=True)
class WorkerMemory:
    """The most that any one Python worker has held, in MB (resident)."""

    peak_mb: float = 0.0
    _workers: list[psutil.Process] = field(default_factory=list)

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Sample as long as the block runs."""
        over = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(over,), daemon=True)
        sampler.start()
        try:
            yield
        finally:
            over.set()
            sampler.join()

    def _sample(self, over: threading.Event) -> None:
        samples = 0
        while True:
            if samples % _SAMPLES_PER_SEARCH == 0:
                self._workers = [child for child in _children() if is_worker(child)]  # walks all processes
            samples += 1
            for worker in self._workers:
                try:
                    self.peak_mb = max(self.peak_mb, worker.memory_info().rss / 1e6)
                except psutil.Error:
                    continue
            if over.wait(_SAMPLE_EVERY_S):
                return


@dataclass(kw_only=True)
class CpuTime:
    """CPU time used since it was last asked, in milliseconds: of Python workers, and of the driver with its JVM."""

    _workers_s: float = 0.0
    _driver_s: float = 0.0

    def lap(self) -> dict[str, float]:
        """Return what was used since the lap before."""
        own = psutil.Process(os.getpid()).cpu_times()
        workers, driver = 0.0, own.user + own.system
        for child in _children():
            try:
                times = child.cpu_times()
                if is_worker(child):
                    # A worker that has ended is in its parent's account.
                    workers += times.user + times.system + times.children_user + times.children_system
                else:
                    driver += times.user + times.system
            except psutil.Error:
                continue
        used = {"cpu.workers": workers - self._workers_s, "cpu.driver": driver - self._driver_s}
        self._workers_s, self._driver_s = workers, driver
        return {name: seconds * 1_000 for name, seconds in used.items()}


def _children() -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(os.getpid()).children(recursive=True)
    return found


def is_worker(process: psutil.Process) -> bool:
    """Return whether this is Spark's Python daemon, or a worker that it has forked."""
    try:
        # The daemon, and what it forks, which keeps its name: `python -m pyspark.daemon`, or Slackwater's own.
        # (The JVM has the daemon's name among its settings.)
        words = process.cmdline()
        return words[1:2] == ["-m"] and str(words[2]).endswith(".daemon")
    except psutil.Error:
        return False
