"""Answers that a worker process caches, so that a key is not looked up again in every batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import polars as pl

from slackwater.engine.enrichment.fitting import FOUND, KEY, MISSING, STATUS

MOST_KEYS: Final = 1_000_000
_MOST_PARTS: Final = 64
_AT: Final = "__at"


@dataclass(kw_only=True)
class AnswerCache:
    """Answers by key, as a frame: queried and extended in bulk.

    An answer lives for `ttl_ms` of processing time, including the answer that the store has nothing. Above `MOST_KEYS`
    keys, the oldest are evicted first. Failures and answers that did not fit are not cached.
    """

    ttl_ms: int | None
    _kept: list[pl.DataFrame] = field(default_factory=list)

    def known(self, keys: pl.Series, now_ms: int) -> pl.DataFrame | None:
        """Return the cached answers for `keys`; None if there are none."""
        if self.ttl_ms is None or not self._kept:
            return None
        asked = pl.DataFrame({KEY: keys})
        fresh = pl.col(_AT) > now_ms - self.ttl_ms
        found = [part.filter(fresh).join(asked, on=KEY, how="semi") for part in self._kept]
        # If processing time went backwards, a key may be in here twice.
        known = pl.concat(found).unique(KEY, keep="last", maintain_order=True).drop(_AT)
        return known if known.height else None

    def keep(self, answers: pl.DataFrame, now_ms: int) -> None:
        """Cache new answers."""
        if self.ttl_ms is None:
            return
        lasting = answers.filter(pl.col(STATUS).is_in([FOUND, MISSING]))
        if lasting.is_empty():
            return
        self._kept.append(lasting.with_columns(pl.lit(now_ms, dtype=pl.Int64()).alias(_AT)))
        if len(self._kept) > _MOST_PARTS or len(self) > MOST_KEYS:
            fresh = pl.col(_AT) > now_ms - self.ttl_ms
            kept = pl.concat(self._kept).filter(fresh).unique(KEY, keep="last", maintain_order=True)
            self._kept = [kept.tail(MOST_KEYS * 3 // 4).rechunk()]

    def __len__(self) -> int:
        return sum(part.height for part in self._kept)
