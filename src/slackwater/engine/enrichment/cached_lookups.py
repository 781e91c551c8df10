"""A step's lookups in one process: the cache in front of the store, and answers as frames."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from slackwater.engine.enrichment.asking import Asker
from slackwater.engine.enrichment.fitting import FOUND, KEY, MISSING, STATUS, answers_schema, failed, fitted
from slackwater.engine.enrichment.stats import LookupStats
from slackwater.formats.base import Format
from slackwater.plan.lookup import LookUp

MOST_KEYS: Final = 1_000_000
_MOST_PARTS: Final = 64
_AT: Final = "__at"
_LEAST_PAUSE_S: Final = 0.1
_MOST_STEPS: Final = 64


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


@dataclass(kw_only=True)
class FoundAnswers:
    """The answers for some keys, and the reasons for keys without one."""

    answers: pl.DataFrame
    failed: dict[Any, str]
    """Keys whose requests failed, with the reason."""


class StepLookups:
    """The client and the cache of one step."""

    def __init__(self, op: LookUp, step: str, key_type: pl.DataType) -> None:
        self._asker = Asker(op.lookup, op.question(step), retries=op.retries)
        self._cache = AnswerCache(ttl_ms=op.cache_ms)
        self._key_type = key_type
        self._output = op.output
        self._format: Format = op.lookup.format(op.output)

    def answers(
        self, keys: pl.Series, now_ms: int, stats: LookupStats, *, patience_s: float, sleep: Callable[[float], None]
    ) -> FoundAnswers:
        """Return the answers for distinct keys that are not null.

        A key whose request fails is retried until `patience_s` has passed.
        """
        known = self._cache.known(keys, now_ms)
        got = [pl.DataFrame(schema=answers_schema(self._key_type, self._output))]
        todo = keys
        if known is not None:
            got.append(known)
            stats.hits += known.height
            todo = pl.DataFrame({KEY: keys}).join(known, on=KEY, how="anti", maintain_order="left")[KEY]
        left = todo.to_list()
        stats.misses += len(left)
        until = time.monotonic() + patience_s
        why: dict[Any, str] = {}
        while left:
            asked = self._asker.ask(left)
            stats.add(asked.stats)
            if done := [key for key in left if key not in asked.failed]:
                fresh = fitted(done, asked.answers, self._format, key_type=self._key_type, output=self._output)
                stats.missing += int((fresh[STATUS] == MISSING).sum())
                self._cache.keep(fresh, now_ms)
                got.append(fresh)
            left, why = list(asked.failed), asked.failed
            rest_s = until - time.monotonic()
            if not left or rest_s <= 0:
                break
            sleep(min(rest_s, max(self._asker.breaker.wait_s, _LEAST_PAUSE_S)))
        return FoundAnswers(answers=pl.concat(got), failed=why)

    def failed(self, why: dict[Any, str]) -> pl.DataFrame:
        """Return keys that failed for good as answers."""
        return failed(why, key_type=self._key_type, output=self._output)


@dataclass(kw_only=True)
class CachedLookups:
    """All lookups of a process, or of an engine in memory; only the cache is lost with it."""

    _steps: dict[tuple[str, int], tuple[LookUp, StepLookups]] = field(default_factory=dict)

    def step(self, op: LookUp, step: str, key_type: pl.DataType) -> StepLookups:
        """Return a step's lookups, created on first use; above `_MOST_STEPS`, the least recently used are dropped."""
        # The definition is kept with its lookups, so that its id cannot be reused.
        known = self._steps.pop((step, id(op)), None) or (op, StepLookups(op, step, key_type))
        self._steps[step, id(op)] = known
        if len(self._steps) > _MOST_STEPS:
            del self._steps[next(iter(self._steps))]
        return known[1]
