"""The share of dead letters among a run's records: a warning if it is large, an error above the user's limit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Final

from slackwater.base.errors import SlackwaterWarning, fault, notice
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.losses import Losses

_WORTH_TELLING: Final = 0.1
_ENOUGH: Final = 10
"""The minimum number of dead letters; with fewer, their share means little."""
_SAMPLE_CHARACTERS: Final = 200


class DeadLetterWarning(SlackwaterWarning):
    """Many records of a stream, or many results of a step, are dead letters."""


@dataclass(kw_only=True)
class DeadLetterShare:
    """The rows and dead letters of each stream and of each step's results since the start of the run."""

    losses: dict[str, Losses] = field(default_factory=dict)
    _streams: set[str] = field(default_factory=set)
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def note(self, stats: BatchStats) -> None:
        """Add a batch; warn, once per origin and reason, if too many of its or the run's rows are dead letters."""
        self._streams.update(stats.streams)
        for origin, batch in stats.losses.items():
            run = self.losses.setdefault(origin, Losses())
            run.add(batch)
            run.settle()
            for losses in (batch, run):
                if losses.dead >= _ENOUGH and _share(losses) > _WORTH_TELLING:
                    self._tell(origin, losses)
                    break

    def check(self, most: float) -> None:
        """Raise an error if more than this share of the rows of any stream, or of any step, are dead letters."""
        for origin, losses in sorted(self.losses.items(), key=lambda each: -_share(each[1])):
            if _share(losses) > most:
                raise fault("DEAD_LETTERS_EXCEEDED", most=f"{most:.1%}", **self._facts(origin, losses))

    def _tell(self, origin: str, losses: Losses) -> None:
        facts = self._facts(origin, losses)
        if (origin, facts["reason"]) not in self._reported:
            self._reported.add((origin, facts["reason"]))
            warnings.warn(notice("DEAD_LETTERS_MANY", **facts), DeadLetterWarning, stacklevel=3)

    def _facts(self, origin: str, losses: Losses) -> dict[str, str]:
        """Return the counts, the most frequent reason and its most frequent message."""
        reason = max(losses.reasons, key=lambda name: losses.reasons[name])
        sample = losses.sample(reason)
        return {
            "whose": f"records of stream `{origin}`" if origin in self._streams else f"results of `{origin}`",
            "dead": f"{losses.dead:,}",
            "rows": f"{max(losses.rows, losses.dead):,}",
            "share": f"{_share(losses):.1%}",
            "reason": reason,
            "sample": sample if len(sample) <= _SAMPLE_CHARACTERS else f"{sample[:_SAMPLE_CHARACTERS]}…",
        }


def _share(losses: Losses) -> float:
    """Return the share of dead letters; rows may fail in a later batch, or a later run, than the one that read them."""
    return losses.dead / max(losses.rows, losses.dead, 1)
