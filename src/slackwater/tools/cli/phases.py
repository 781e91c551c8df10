"""The phases of a start: what `slackwater run` is doing until the first batch is delivered, and for how long."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from slackwater.tools.cli.progress import ProgressLines

_STILL_EVERY_S: Final = 30.0
_WORTH_SHOWING_S: Final = 0.1
_FIRST: Final = "loading Python"
"""The phase that begins with the process."""


@dataclass(kw_only=True)
class Phases:
    """A stopwatch: each phase ends when the next one begins, and the first one begins with the process.

    On a terminal, one line shows the phases until the first batch; its last one counts up. Elsewhere, each phase has
    a line when it ends, and one every 30 seconds until then. With `verbose`, every phase has a line, even after that.
    """

    progress: ProgressLines
    verbose: bool = False
    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=lambda: time.monotonic() - process_age_s())
    _name: str = ""
    """The name of the pipeline while it starts."""
    _phase: str = _FIRST
    _since: float = field(init=False)
    _told: float = field(init=False)
    _over: list[str] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._since = self._told = self.began

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Show the start of a pipeline, second by second, until `started` or the end of the block."""
        over = threading.Event()
        with self._lock:
            self._name = name
        ticking = threading.Thread(target=self._tick_until, args=(over,), daemon=True, name="slackwater-phases")
        ticking.start()
        try:
            yield
        finally:
            over.set()
            ticking.join()
            self.started()

    def begin(self, phase: str) -> None:
        """End the current phase and begin another; an empty name is a pause that is not shown."""
        with self._lock:
            self._end()
            self._phase = phase
            self._since = self._told = self.clock()
            self.tick()

    def tick(self) -> None:
        """Show how long the current phase has taken, if that is due."""
        with self._lock:
            if not self._name or not self._phase:
                return
            now = self.clock()
            if self._is_live:
                self.progress.show(self._line(now))
            elif now - self._told >= _STILL_EVERY_S:
                self._told = now
                self.progress.note(f"still {self._phase}, {now - self._since:.0f} s")

    def started(self) -> None:
        """Leave the line of the start as it is: the first batch has been delivered, or the start has failed."""
        with self._lock:
            if self._name and self._is_live:
                self.progress.settle()
            self._name = ""

    def end(self) -> None:
        """End the last phase, and print how long everything took."""
        with self._lock:
            self._end()
            self._phase = ""
            if self.verbose:
                self.progress.note(f"total {self.clock() - self.began:.1f} s")

    @property
    def _is_live(self) -> bool:
        return self.progress.is_terminal and not self.verbose

    def _end(self) -> None:
        took = self.clock() - self._since
        text = f"{self._phase} {took:.1f} s"
        if self._phase and (self.verbose or took >= _WORTH_SHOWING_S):
            self._over.append(text)
            if self.verbose or (self._name and not self._is_live):
                self.progress.note(text)

    def _line(self, now: float) -> str:
        """Return all phases in one line; if the terminal is too narrow, the last ones."""
        line = " · ".join([*self._over, f"{self._phase} {now - self._since:.0f} s"])
        room = shutil.get_terminal_size().columns - len(self._name) - 3
        return f"{self._name}: {line if len(line) <= room else f'…{line[1 - max(room, 2) :]}'}"

    def _tick_until(self, over: threading.Event) -> None:
        while not over.wait(1.0):
            self.tick()


def process_age_s() -> float:
    """Return how long ago this process started; if the system does not say, the CPU time it has used."""
    try:
        # The name, in parentheses, may contain anything; the state and the rest follow it.
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError):
        return time.process_time()
