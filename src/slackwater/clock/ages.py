"""How old rows are when a batch begins: the processing time of the batch less the time that a row has."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from slackwater.clock.sketch import Sketch
from slackwater.ground.times import LAST_USABLE_MS

EVENT: Final = "event"
INGESTION: Final = "ingestion"
"""The times that the age of an output's rows is counted from."""
_END_MS: Final = LAST_USABLE_MS - 1
"""The time of results of the global window, which ends with all of time."""
_SAMPLE: Final = 4_096
"""Rows that are looked at, of more than twice as many: a share of them is known within 2 %."""
_STRIDE: Final = 2_654_435_761
"""Takes them from all over, and not every n-th: what sends rows may come in turns."""


class AgeSketch(Sketch):
    """A sketch of ages in milliseconds; 0 are the rows whose time is not before the batch's own.

    Of many rows it looks at a sample, always the same one; their number and the largest age are exact.
    """

    def observe(self, times_ms: pl.Series, now_ms: int) -> None:
        """Add rows by their times in epoch milliseconds; those without one, or at the end of time, are left out."""
        if times_ms.null_count() or _largest(times_ms) >= _END_MS:
            times_ms = times_ms.filter(times_ms < _END_MS)
        rows = times_ms.len()
        if not rows:
            return
        oldest = _smallest(times_ms)
        if oldest == _largest(times_ms):  # as the ingestion times of a file
            self.add(now_ms - oldest, rows)
            return
        self.max_ms = max(self.max_ms, now_ms - oldest)
        times = times_ms.to_numpy()
        if rows > 2 * _SAMPLE:
            times = times[(np.arange(_SAMPLE) * _STRIDE) % rows]
        self._count(now_ms - times, rows)


def _largest(times_ms: pl.Series) -> int:
    return 0 if times_ms.is_empty() else int(times_ms.max())  # type: ignore[arg-type]  # whole numbers: Polars says any


def _smallest(times_ms: pl.Series) -> int:
    return int(times_ms.min())  # type: ignore[arg-type]  # as above
