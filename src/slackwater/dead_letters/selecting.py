"""Choosing among dead letters: by reason, step, source and time, or one by the beginning of its id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl

from slackwater.errors import DefinitionError, fault, refuse
from slackwater.ground.durations import duration


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which letters are meant; all that is given must hold."""

    reason: str | None = None
    step: str | None = None
    source: str | None = None
    since: datetime | None = None

    def expression(self) -> pl.Expr:
        """Return what holds of the letters that are meant."""
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
    """Return a time as users write it: ISO 8601, in UTC unless it says otherwise, or `2h` for two hours ago."""
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
    """Return the one letter whose id begins with `prefix`; none or several are a fault."""
    beginning = prefix.strip().lower()
    found = letters.filter(pl.col("id").str.starts_with(beginning)).unique("id", maintain_order=True).collect()
    if not beginning or not found.height:
        raise fault("DEAD_LETTER_UNKNOWN", id=prefix, where=where)
    if found.height > 1:
        known = ", ".join(found["id"].head(5)) + (", …" if found.height > 5 else "")  # noqa: PLR2004  as many as a line holds
        raise fault("DEAD_LETTER_AMBIGUOUS", id=prefix, count=found.height, known=known)
    return found.row(0, named=True)


def _pattern(glob: str) -> str:
    """Return a glob of a shell (`*` and `?`, which match `/` as well) as a regular expression."""
    wild = {"*": ".*", "?": "."}
    return "(?s)^" + "".join(wild.get(letter) or re.escape(letter) for letter in glob) + "$"
