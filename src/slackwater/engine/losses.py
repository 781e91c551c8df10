"""How many rows of a stream, or of a step's results, became dead letters, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import polars as pl


@dataclass(kw_only=True)
class Losses:
    """The rows of one origin, and its dead letters, wherever they arose: in FRONT or in a keyed step.

    The origin of a record is its source stream; that of a result, a late row or a timer is the step it comes from. In
    FRONT, a record counts once, whatever number of dead letters it gives. Key groups do not know of each other, so a
    record that fails in two keyed steps counts in both.
    """

    rows: int = 0
    dead: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Dead letters by reason."""
    examples: dict[str, str] = field(default_factory=dict)
    """The message of one dead letter of each reason."""

    def note(self, letters: pl.DataFrame) -> None:
        """Add dead letters by reason; their rows are counted by the caller."""
        by_reason = letters.group_by("reason").agg(pl.len(), pl.col("message").min())
        for reason, count, message in by_reason.iter_rows():
            self._note(reason, count, message)

    def add(self, other: Losses) -> None:
        """Add the losses of another task or batch."""
        self.rows += other.rows
        self.dead += other.dead
        for reason, count in other.reasons.items():
            self._note(reason, count, other.examples[reason])

    def _note(self, reason: str, count: int, message: str) -> None:
        self.reasons[reason] += count
        # Tasks report in any order, and a replayed batch must report the same.
        self.examples[reason] = min(message, self.examples.get(reason, message))

    def to_json(self) -> dict[str, Any]:
        """Return the losses as plain values."""
        return vars(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Losses:
        """Return the losses of a `to_json` result."""
        return cls(**{**facts, "reasons": Counter(facts["reasons"])})


def records(letters: pl.DataFrame) -> int:
    """Return how many records of one stream the dead letters come from: several sinks may refuse the same one."""
    return int(letters.select(pl.struct("partition", "offset").n_unique()).item())
