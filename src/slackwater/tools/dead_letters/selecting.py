"""Selects dead letters: by reason, step, source and time, or a single one by the beginning of its id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl

from slackwater.base.durations import duration
from slackwater.base.errors import DefinitionError, fault, listed, refuse


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions for selecting letters, all of which must hold."""

    reason: str | None = None
    step: str | None = None
    source: str | None = None
    since: datetime | None = None

    def expression(self) -> pl.Expr:
        """Return the condition that selects the letters."""
        holds = pl.lit(value=True)
        if self.reason is not None:
            holds &= pl.col("reason") == self.reason
        if self.step is not None:
            holds &= pl.col("step") == self.step
        if self.source is not None:
            holds &= pl.col("source").str.contains(_pattern(self.source))
        if self.since is not None:
            holds &= pl.col("processed_at") >= self.since
        return holds


def since_time(text: str, *, now: datetime | None = None) -> datetime:
    """Parse a time as users write it: ISO 8601, in UTC unless it has an offset, or `2h` for two hours ago."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            ago: timedelta = duration(text)
        except DefinitionError:
            raise refuse("DEAD_LETTERS_SINCE", got=repr(text)) from None
        return (now or datetime.now(UTC)) - ago
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def only_letter(letters: pl.LazyFrame, prefix: str, *, where: object) -> dict[str, object]:
    """Return the letter whose id begins with `prefix`; raise a fault if there is none or more than one."""
    beginning = prefix.strip().lower()
    found = letters.filter(pl.col("id").str.starts_with(beginning)).unique("id", maintain_order=True).collect()
    if not beginning or not found.height:
        raise fault("DEAD_LETTER_UNKNOWN", id=prefix, where=where)
    if found.height > 1:
        known = listed(found["id"], most=5)
        raise fault("DEAD_LETTER_AMBIGUOUS", id=prefix, count=found.height, known=known)
    return found.row(0, named=True)


def _pattern(glob: str) -> str:
    """Convert a shell glob (`*` and `?`, which also match `/`) to a regular expression."""
    wild = {"*": ".*", "?": "."}
    return "(?s)^" + "".join(wild.get(letter) or re.escape(letter) for letter in glob) + "$"
