"""Statistics of a lookup in one batch: counts, and the store's latency."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any, Final

_PARTS: Final = 8
"""Buckets per power of two: a latency is known within 9 %."""


@dataclass(kw_only=True)
class LookupStats:
    """The statistics of one lookup step. Keys are counted once per chunk of rows."""

    requests: int = 0
    hits: int = 0
    """Keys answered from the cache."""
    misses: int = 0
    """Keys that the store was asked for."""
    missing: int = 0
    """Of those, keys for which the store has nothing."""
    errors: int = 0
    """Failed requests, including those that were retried."""
    latency: Counter[int] = field(default_factory=Counter)
    """Answered requests by latency bucket."""

    def note_ms(self, milliseconds: float) -> None:
        """Count an answered request by the time it took."""
        self.latency[ceil(_PARTS * log2(max(milliseconds, 1 / 16)))] += 1

    def quantile_ms(self, q: float) -> float:
        """Return the latency that a share `q` of answered requests did not exceed, within 9 %; 0 if there are none."""
        rank, seen = ceil(q * self.latency.total()), 0
        for bucket, count in sorted(self.latency.items()):
            seen += count
            if seen >= rank:
                return round(float(2 ** (bucket / _PARTS)), 1)
        return 0.0

    @property
    def p50_ms(self) -> float:
        """The median latency of answered requests."""
        return self.quantile_ms(0.5)

    @property
    def p99_ms(self) -> float:
        """The latency that 99 of 100 answered requests did not exceed."""
        return self.quantile_ms(0.99)

    def add(self, other: LookupStats) -> None:
        """Add the counts of another task."""
        for name in ("requests", "hits", "misses", "missing", "errors"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latency.update(other.latency)

    def to_facts(self) -> dict[str, Any]:
        """Return the statistics in the form that packets carry."""
        return {**vars(self), "latency": {str(bucket): count for bucket, count in self.latency.items()}}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> LookupStats:
        """Return the statistics from the result of `to_facts`."""
        return cls(**{**facts, "latency": Counter({int(at): count for at, count in facts["latency"].items()})})
