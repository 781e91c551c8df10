"""The phases of a start, each printed with its duration when it ends, for `slackwater run --verbose`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(kw_only=True)
class Phases:
    """A stopwatch: each phase begins when the previous one ends, the first one with the process."""

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=lambda: time.monotonic() - process_age_s())
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin the first phase."""
        self._last = self.began

    def over(self, name: str) -> None:
        """Print how long a phase took that ends now."""
        now = self.clock()
        self.say(f"{name} {now - self._last:.1f} s")
        self._last = now

    def end(self) -> None:
        """Print how long the shutdown took, and everything together."""
        self.over("shutdown")
        self.say(f"total {self._last - self.began:.1f} s")


def process_age_s() -> float:
    """Return how long ago this process started; if the system does not say, the CPU time it has used."""
    try:
        # The name, in parentheses, may contain anything; the state and the rest follow it.
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError):
        return time.process_time()
