"""How many rows of a stream, or of a step's results, became dead letters, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

MOST_MESSAGES: Final = 16
"""How many messages of a reason are counted."""
_CHARACTERS: Final = 1_000


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
    """The smallest message of each reason, for reasons of which no message is frequent."""
    messages: dict[str, Counter[str]] = field(default_factory=dict)
    """How often the frequent messages of each reason occurred; too low by the same number for each, if there are many.

    A message that more than one in `MOST_MESSAGES` + 1 dead letters of its reason have is always among them.
    """

    def note(self, letters: pl.DataFrame) -> None:
        """Add dead letters by reason; their rows are counted by the caller."""
        message = pl.col("message").fill_null("").str.slice(0, _CHARACTERS)
        by_message = letters.group_by("reason", message).len("count")
        by_reason = by_message.group_by("reason").agg(pl.col("count").sum(), pl.col("message").min())
        for reason, count, smallest in by_reason.iter_rows():
            self._note(reason, count, smallest)
        if by_message.height > MOST_MESSAGES:
            by_message = by_message.filter(pl.col("count") > 1)  # sorting a million that differ would take a second
        first = by_message.sort("count", "message", descending=[True, False])
        first = first.group_by("reason", maintain_order=True).head(MOST_MESSAGES + 1)
        for reason, text, count in first.select("reason", "message", "count").iter_rows():
            self.messages.setdefault(reason, Counter())[text] += count
        self.settle()

    def add(self, other: Losses) -> None:
        """Add the losses of another task or batch; call `settle` after the last one."""
        self.rows += other.rows
        self.dead += other.dead
        for reason, count in other.reasons.items():
            self._note(reason, count, other.examples[reason])
        for reason, counts in other.messages.items():
            self.messages.setdefault(reason, Counter()).update(counts)

    def settle(self) -> None:
        """Forget the rare messages of a reason that has many, and subtract their share from the others.

        Tasks report in any order, and a replayed batch must report the same: so this comes after all are added.
        """
        for reason, counts in self.messages.items():
            if len(counts) > MOST_MESSAGES:
                floor = sorted(counts.values(), reverse=True)[MOST_MESSAGES]
                self.messages[reason] = Counter({text: n - floor for text, n in counts.items() if n > floor})

    def sample(self, reason: str) -> str:
        """Return the most frequent message of a reason; of several, or if none is frequent, the smallest."""
        counts = self.messages.get(reason)
        return min(counts, key=lambda text: (-counts[text], text)) if counts else self.examples[reason]

    def _note(self, reason: str, count: int, message: str) -> None:
        self.reasons[reason] += count
        self.examples[reason] = min(message, self.examples.get(reason, message))

    def to_json(self) -> dict[str, Any]:
        """Return the losses as plain values."""
        return vars(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Losses:
        """Return the losses of a `to_json` result."""
        messages = {reason: Counter(counts) for reason, counts in facts["messages"].items()}
        return cls(**{**facts, "reasons": Counter(facts["reasons"]), "messages": messages})


def records(letters: pl.DataFrame) -> int:
    """Return how many records of one stream the dead letters come from: several sinks may refuse the same one."""
    return int(letters.select(pl.struct("partition", "offset").n_unique()).item())
