"""Skew: how the rows of a batch are distributed over the keys of a step, estimated from a sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.formats.row_payloads import readable_values

_SAMPLE: Final = 10_000
"""The number of rows sampled from a frame of more than twice as many."""
_STRIDE: Final = 2_654_435_761
"""Scatters the sample over the frame, instead of taking every n-th row: keys may alternate."""
_KEPT: Final = 8
"""The number of keys that a task reports for each step."""
_LONGEST: Final = 80


@dataclass(kw_only=True)
class Skew:
    """The number of rows that a step received in a batch, and approximately how many its largest keys have."""

    rows: int = 0
    keys: dict[str, int] = field(default_factory=dict)
    is_whole: bool = True
    """Whether `keys` has every key that occurred."""

    def observe(self, rows: pl.DataFrame, keys: list[str]) -> None:
        """Count `rows` by key."""
        sample = rows.select(keys)
        if rows.height > 2 * _SAMPLE:
            sample = sample[(np.arange(_SAMPLE) * _STRIDE) % rows.height]
        share = rows.height / max(1, sample.height)
        largest = sample.group_by(keys).agg(pl.len().alias("__n")).sort("__n", *keys, descending=True, nulls_last=True)
        most = largest.head(_KEPT)
        shown = [_shown(key) for key in zip(*(readable_values(most[key]) for key in keys), strict=True)]
        found = {key: round(number * share) for key, number in zip(shown, most["__n"], strict=True)}
        self.add(Skew(rows=rows.height, keys=found, is_whole=largest.height <= _KEPT))

    def add(self, other: Skew) -> None:
        """Add the counts of another part of the batch."""
        self.rows += other.rows
        self.is_whole = self.is_whole and other.is_whole
        for key, number in other.keys.items():
            self.keys[key] = self.keys.get(key, 0) + number

    @property
    def largest(self) -> tuple[str, float]:
        """The key with the most rows, and its share of them: a lower bound, because small counts are not reported."""
        key, number = max(self.keys.items(), key=lambda each: (each[1], each[0]), default=("", 0))
        return key, number / max(1, self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the counts that a task reports."""
        most = sorted(self.keys.items(), key=lambda each: (-each[1], each[0]))[:_KEPT]
        return {"rows": self.rows, "keys": dict(most), "is_whole": self.is_whole and len(self.keys) <= _KEPT}


def _shown(key: tuple[object, ...]) -> str:
    text = ", ".join("null" if value is None else str(value) for value in key)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
