"""The share of dead letters among a run's records: a warning if it is large, an error above the user's limit."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from slackwater.clock.batch_stats import BatchStats, StreamStats
from slackwater.errors import SlackwaterWarning, fault, notice

_WORTH_TELLING: Final = 0.1
_ENOUGH: Final = 10
"""The minimum number of dead letters; with fewer, their share means little."""
_SAMPLE_CHARACTERS: Final = 200


class DeadLetterWarning(SlackwaterWarning):
    """Many records of a stream are dead letters."""


@dataclass(kw_only=True)
class DeadLetterShare:
    """The records and dead letters of each stream since the start of the run."""

    streams: dict[str, StreamStats] = field(default_factory=dict)
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def note(self, stats: BatchStats) -> None:
        """Add a batch; warn, once per stream and reason, if too many of its or the run's records are dead letters."""
        for name, batch in stats.streams.items():
            run = self.streams.setdefault(name, StreamStats())
            _add(run, batch)
            for records in (batch, run):
                if records.dead >= _ENOUGH and records.dead > _WORTH_TELLING * records.rows:
                    self._tell(name, records)
                    break

    def check(self, most: float) -> None:
        """Raise an error if more than this share of all records are dead letters."""
        total = StreamStats()
        for stream in self.streams.values():
            _add(total, stream)
        if total.dead > most * total.rows:
            raise fault("DEAD_LETTERS_EXCEEDED", most=f"{most:.1%}", **_facts(total))

    def _tell(self, stream: str, records: StreamStats) -> None:
        facts = _facts(records)
        if (stream, facts["reason"]) not in self._reported:
            self._reported.add((stream, facts["reason"]))
            warnings.warn(notice("DEAD_LETTERS_MANY", stream=stream, **facts), DeadLetterWarning, stacklevel=3)


def _add(total: StreamStats, more: StreamStats) -> None:
    total.rows += more.rows
    total.dead += more.dead
    for reason, counts in more.reasons.items():
        total.reasons.setdefault(reason, Counter()).update(counts)
    total.examples = {**more.examples, **total.examples}


def _facts(records: StreamStats) -> dict[str, str]:
    """Return the counts, the most frequent reason and one of its messages."""
    reason = max(records.reasons, key=lambda name: records.reasons[name].total())
    sample = records.examples[reason]
    return {
        "dead": f"{records.dead:,}",
        "rows": f"{records.rows:,}",
        "share": f"{records.dead / records.rows:.1%}",
        "reason": reason,
        "sample": sample if len(sample) <= _SAMPLE_CHARACTERS else f"{sample[:_SAMPLE_CHARACTERS]}…",
    }
