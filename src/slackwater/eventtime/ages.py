"""The age of rows when a batch begins: the processing time of the batch minus the time of the row."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from slackwater.base.times import LAST_USABLE_MS
from slackwater.eventtime.sketch import Sketch

EVENT: Final = "event"
INGESTION: Final = "ingestion"
"""The times from which the age of an output's rows is measured."""
_END_MS: Final = LAST_USABLE_MS - 1
"""The time of the results of the global window, which ends at the end of time."""
_SAMPLE: Final = 4_096
"""The number of rows sampled from more than twice as many: shares are accurate within 2 %."""
_STRIDE: Final = 2_654_435_761
"""Scatters the sample over all rows, instead of taking every n-th: senders may alternate."""


class AgeSketch(Sketch):
    """A sketch of ages in milliseconds; the age is 0 if the row's time is not before that of the batch.

    Many rows are sampled, deterministically; the number of rows and the largest age are exact.
    """

    def observe(self, times_ms: pl.Series, now_ms: int) -> None:
        """Add rows by their times in epoch milliseconds, except rows without one or at the end of time."""
        if times_ms.null_count() or _largest(times_ms) >= _END_MS:
            times_ms = times_ms.filter(times_ms < _END_MS)
        rows = times_ms.len()
        if not rows:
            return
        oldest = _smallest(times_ms)
        if oldest == _largest(times_ms):  # such as the ingestion times of a file
            self.add(now_ms - oldest, rows)
            return
        self.max_ms = max(self.max_ms, now_ms - oldest)
        times = times_ms.to_numpy()
        if rows > 2 * _SAMPLE:
            times = times[(np.arange(_SAMPLE) * _STRIDE) % rows]
        self._count(now_ms - times, rows)


def _largest(times_ms: pl.Series) -> int:
    return 0 if times_ms.is_empty() else int(times_ms.max())  # type: ignore[arg-type]  # an Int64 column; the stubs say Any


def _smallest(times_ms: pl.Series) -> int:
    return int(times_ms.min())  # type: ignore[arg-type]  # as above
