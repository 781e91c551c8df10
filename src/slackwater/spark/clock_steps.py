"""Notices that the machine's clock was set back: Spark then waits for the time that its next batch was due at."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_LEAST_S: Final = 1.0
"""Shorter steps cost less than a restart of the query; a clock that is slewed makes none at all."""


@dataclass(kw_only=True)
class ClockSteps:
    """Compares the machine's clock with a steady one, from look to look."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    _ahead_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._ahead_s = self.wall() - self.steady()

    def is_set_back(self) -> bool:
        """Return whether the clock was set back since the last look."""
        before, self._ahead_s = self._ahead_s, self.wall() - self.steady()
        return self._ahead_s < before - _LEAST_S
