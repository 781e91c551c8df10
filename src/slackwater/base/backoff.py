"""Waiting: the growing pauses between attempts, and one wait that ends early."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

_LOOK_S: Final = 0.1
_MOST_GROWTH: Final = 64
"""No pause grows more often than this; a higher power overflows."""


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """The pauses between attempts: each is `factor` times as long as the one before, up to `longest_s`.

    Of each pause, a random part of at most the share `jitter` is left out, so that many clients of a server that
    comes back do not ask at the same moment.
    """

    first_s: float
    longest_s: float
    factor: float = 2.0
    jitter: float = 0.5

    def pause_s(self, failures: int) -> float:
        """Return the pause after so many consecutive failures, of which the first is 1."""
        full_s = min(self.longest_s, self.first_s * self.factor ** min(failures - 1, _MOST_GROWTH))
        return full_s * random.uniform(1.0 - self.jitter, 1.0)  # noqa: S311  not used for secrets

    def pauses(self) -> Iterator[float]:
        """Yield the pauses after the first failure, the second, and so on, without end."""
        return map(self.pause_s, count(1))

    def attempts(self, most: int) -> Iterator[int]:
        """Yield the numbers of at most `most` attempts, from 0, with a pause before every one but the first."""
        for attempt in range(most):
            if attempt:
                time.sleep(self.pause_s(attempt))
            yield attempt


def came_true(
    condition: Callable[[], bool],
    *,
    within_s: float,
    every_s: float = _LOOK_S,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until `condition` holds, for at most `within_s` seconds; return whether it does.

    It is checked at once, then every `every_s` seconds. With a request to stop as the condition, this is a pause that a
    stop ends; with the `wait` of a `threading.Event` as `sleep`, the event ends the current slice.
    """
    until = clock() + within_s
    while not condition():
        left_s = until - clock()
        if left_s <= 0:
            return False
        sleep(min(every_s, left_s))
    return True
