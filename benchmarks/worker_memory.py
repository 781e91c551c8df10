"""The memory of Spark's Python workers, sampled while a batch runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import psutil

_SAMPLE_EVERY_S: Final = 0.05
_SAMPLES_PER_SEARCH: Final = 8


@dataclass(kw_only=True)
class WorkerMemory:
    """The most that any one worker has held, in MB (resident)."""

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
                self._workers = _find_workers()  # walks all processes, so not every time
            samples += 1
            for worker in self._workers:
                try:
                    self.peak_mb = max(self.peak_mb, worker.memory_info().rss / 1e6)
                except psutil.NoSuchProcess:
                    continue
            if over.wait(_SAMPLE_EVERY_S):
                return


def _find_workers() -> list[psutil.Process]:
    found = []
    for process in psutil.Process(os.getpid()).children(recursive=True):
        try:
            if "pyspark.daemon" in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found
