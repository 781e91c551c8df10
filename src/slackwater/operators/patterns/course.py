"""The course of a pattern: which steps may follow each other, as tables for a search over many rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from slackwater.operators.patterns.conditions import Condition
from slackwater.operators.patterns.definitions import Pattern
from slackwater.operators.patterns.steps import PatternStep

ANY_NUMBER: Final = 1 << 40
BEFORE: Final = -1
"""The step number of a match that has not taken a row yet."""


class Course:
    """The steps of a pattern by number."""

    def __init__(
        self, pattern: Pattern, conditions: Sequence[Condition], keys: Sequence[str], fields: Sequence[str]
    ) -> None:
        steps = pattern.steps
        self.pattern = pattern
        self.conditions = tuple(conditions)
        self.keys = tuple(keys)
        self.fields = tuple(fields)
        """The columns that conditions read from the rows of other steps."""
        self.is_strict = pattern.contiguity == "strict"
        self.least = np.array([step.least for step in steps])
        self.most = np.array([ANY_NUMBER if step.most is None else step.most for step in steps])
        self.next = {at: _next(steps, at) for at in range(BEFORE, len(steps))}
        """For each step, the steps that may follow it, nearest first."""
        self.may_end = np.array([all(later.is_optional for later in steps[at + 1 :]) for at in range(len(steps))])
        """Whether a match may end with the step."""
        referred = sorted({at for condition in conditions for at in condition.refers})
        self.slots = {at: slot for slot, at in enumerate(referred)}
        """The steps that conditions refer to, each with the index at which the row it took last is stored."""

    def is_tied(self, steps: Iterable[int]) -> bool:
        """Return whether one of these steps has a condition that refers to rows of the match."""
        return any(self.conditions[step].tied is not None for step in steps)

    def options(self, step: int, *, stays: bool, leaves: bool) -> tuple[int, ...]:
        """Return the steps that may take the next row, preferred first: a step takes as many rows as it can."""
        return ((step,) if stays else ()) + (self.next[step] if leaves else ())


def mask_of(steps: Iterable[int]) -> int:
    """Return the bit mask of these steps; the conditions that a row meets are stored as such a mask."""
    return sum(1 << step for step in steps)


def _next(steps: Sequence[PatternStep], at: int) -> tuple[int, ...]:
    found = []
    for later in range(at + 1, len(steps)):
        found.append(later)
        if not steps[later].is_optional:
            break
    return tuple(found)
