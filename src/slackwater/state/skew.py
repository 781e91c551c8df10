"""Skew: how the rows of a batch are spread over the keys of a step, from a sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

_SAMPLE: Final = 10_000
"""Rows that are looked at, of more than twice as many."""
_STRIDE: Final = 2_654_435_761
"""Takes them from all over, and not every n-th: keys may come in turns."""
_KEPT: Final = 8
"""Keys that a task reports for each step."""
_LONGEST: Final = 80


@dataclass(kw_only=True)
class Skew:
    """How many rows a step took in a batch, and about how many of them its largest keys have."""

    rows: int = 0
    keys: dict[str, int] = field(default_factory=dict)
    is_whole: bool = True
    """Whether `keys` has every key that was seen."""

    def observe(self, rows: pl.DataFrame, keys: list[str]) -> None:
        """Count `rows` by key."""
        sample = rows.select(keys)
        if rows.height > 2 * _SAMPLE:
            sample = sample[(np.arange(_SAMPLE) * _STRIDE) % rows.height]
        share = rows.height / max(1, sample.height)
        largest = sample.group_by(keys).agg(pl.len().alias("__n")).sort("__n", *keys, descending=True, nulls_last=True)
        found = {_shown(row[:-1]): round(row[-1] * share) for row in largest.head(_KEPT).rows()}
        self.add(Skew(rows=rows.height, keys=found, is_whole=largest.height <= _KEPT))

    def add(self, other: Skew) -> None:
        """Add what another part of the batch counted."""
        self.rows += other.rows
        self.is_whole = self.is_whole and other.is_whole
        for key, number in other.keys.items():
            self.keys[key] = self.keys.get(key, 0) + number

    @property
    def largest(self) -> tuple[str, float]:
        """The key with the most rows, and its share of them; at least so much, for small parts of it go uncounted."""
        key, number = max(self.keys.items(), key=lambda each: (each[1], each[0]), default=("", 0))
        return key, number / max(1, self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a task reports them."""
        most = sorted(self.keys.items(), key=lambda each: (-each[1], each[0]))[:_KEPT]
        return {"rows": self.rows, "keys": dict(most), "is_whole": self.is_whole and len(self.keys) <= _KEPT}


def _shown(key: tuple[object, ...]) -> str:
    text = ", ".join("null" if value is None else str(value) for value in key)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
