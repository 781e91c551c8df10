"""The circuit breaker: a store that is down is left alone, except for an occasional probe."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from slackwater.base.backoff import Backoff

FAILURES: Final = 5
"""Consecutive failures that open the breaker."""
OPEN: Final = Backoff(first_s=1.0, longest_s=30.0, jitter=0.0)
"""How long it stays open, the first time and after each failed probe."""


@dataclass(kw_only=True)
class Breaker:
    """Decides whether a store may be queried.

    Closed, it lets every request through. After `FAILURES` consecutive failures it opens: requests fail at once,
    without reaching the store. When its time is over it is half open and lets one probe through. If the probe
    succeeds, the breaker closes; if it fails, the breaker stays open twice as long as before.
    """

    clock: Callable[[], float] = time.monotonic
    why: str = ""
    """The last failure."""
    _failures: int = 0
    _openings: int = 0
    """How often it has opened since the last answer."""
    _until: float = 0.0
    _is_probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether requests fail at once, or only a probe is let through."""
        return self._openings > 0

    @property
    def wait_s(self) -> float:
        """How long until the store may be queried."""
        return max(0.0, self._until - self.clock()) if self.is_open else 0.0

    def allows(self) -> bool:
        """Return whether a request may be made now; its outcome must be reported afterwards."""
        if not self.is_open:
            return True
        if self._is_probing or self.wait_s > 0:
            return False
        self._is_probing = True
        return True

    def succeeded(self) -> None:
        """Record that a request was answered."""
        self._failures, self._openings, self._is_probing = 0, 0, False

    def gave_up(self) -> None:
        """Record that a request ended before it was clear whether the store would answer."""
        self._is_probing = False

    def failed(self, why: str) -> None:
        """Record that a request failed."""
        self.why = why
        self._failures += 1
        if self._is_probing or (not self.is_open and self._failures >= FAILURES):
            self._openings += 1
            self._until = self.clock() + OPEN.pause_s(self._openings)
            self._is_probing = False
