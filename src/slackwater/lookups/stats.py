"""What a lookup did in one batch: counts, and how long the store took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any, Final

_PARTS: Final = 8
"""Buckets to every power of two: a latency is known within 9 %."""


@dataclass(kw_only=True)
class LookupStats:
    """The statistics of one lookup step. Keys are counted once for each chunk of rows."""

    requests: int = 0
    hits: int = 0
    """Keys that the cache answered."""
    misses: int = 0
    """Keys that the store was asked for."""
    missing: int = 0
    """Keys, among those, that the store has nothing for."""
    errors: int = 0
    """Requests that failed, those that were tried again among them."""
    latency: Counter[int] = field(default_factory=Counter)
    """Answered requests by bucket of their time."""

    def note_ms(self, milliseconds: float) -> None:
        """Count an answered request by the time it took."""
        self.latency[ceil(_PARTS * log2(max(milliseconds, 1 / 16)))] += 1

    def quantile_ms(self, q: float) -> float:
        """Return the time that a share `q` of the answered requests did not exceed, within 9 %; 0 of none."""
        rank, seen = ceil(q * self.latency.total()), 0
        for bucket, count in sorted(self.latency.items()):
            seen += count
            if seen >= rank:
                return round(float(2 ** (bucket / _PARTS)), 1)
        return 0.0

    @property
    def p50_ms(self) -> float:
        """The median time of an answered request."""
        return self.quantile_ms(0.5)

    @property
    def p99_ms(self) -> float:
        """The time that 99 of 100 answered requests did not exceed."""
        return self.quantile_ms(0.99)

    def add(self, other: LookupStats) -> None:
        """Add what another task counted."""
        for name in ("requests", "hits", "misses", "missing", "errors"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latency.update(other.latency)

    def to_facts(self) -> dict[str, Any]:
        """Return the statistics as packets carry them."""
        return {**vars(self), "latency": {str(bucket): count for bucket, count in self.latency.items()}}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> LookupStats:
        """Return what `to_facts` gave."""
        return cls(**{**facts, "latency": Counter({int(at): count for at, count in facts["latency"].items()})})
