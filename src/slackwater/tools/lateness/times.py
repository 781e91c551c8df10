"""The event times of a stream by partition, with and without those from clocks that run ahead."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.eventtime.measured_lateness import AHEAD_MS, LatenessSketch
from slackwater.tools.lateness.report import ClocksAhead, MeasuredStream


@dataclass(kw_only=True)
class _Seen:
    """The observed times of some events."""

    sketches: dict[str, LatenessSketch] = field(default_factory=dict)
    first_ms: int = MAX_MS
    last_ms: int = MIN_MS
    _newest: dict[str, int] = field(default_factory=dict)

    def observe(self, times: npt.NDArray[np.int64], partition: str) -> None:
        if len(times):
            sketch = self.sketches.setdefault(partition, LatenessSketch.empty())
            self._newest[partition] = sketch.observe(times, self._newest.get(partition, MIN_MS))
            self.first_ms = min(self.first_ms, int(times.min()))
            self.last_ms = max(self.last_ms, self._newest[partition])


@dataclass(kw_only=True)
class StreamTimes:
    """The times of a stream being read; `guarded` leaves out those from clocks that run ahead.

    Unless most events are ahead: then the events did not happen when the log received them, as in a simulation, and
    arrival times say nothing about clocks.
    """

    guarded: bool
    _all: _Seen = field(default_factory=_Seen)
    _believed: _Seen = field(default_factory=_Seen)
    _ahead: Counter[str] = field(default_factory=Counter)
    _furthest_ms: int = 0

    def note(self, rows: pl.DataFrame, partition: str) -> None:
        """Observe the times of some rows of a partition."""
        if rows.is_empty():
            return
        if not rows["__off"].is_sorted():
            rows = rows.sort("__off", maintain_order=True)  # a user's function may have changed the order
        times = rows["__ts"].to_numpy()
        self._all.observe(times, partition)
        if not self.guarded:
            return
        ahead_ms = times - rows["__ingested"].to_numpy()
        is_ahead = ahead_ms > AHEAD_MS
        self._believed.observe(times[~is_ahead], partition)
        if is_ahead.any():
            self._ahead[partition] += int(is_ahead.sum())
            self._furthest_ms = max(self._furthest_ms, int(ahead_ms.max()))

    def tell(self, measured: MeasuredStream) -> None:
        """Store the observations in `measured`."""
        count, events = self._ahead.total(), sum(sketch.count for sketch in self._all.sketches.values())
        is_believed = self.guarded and 2 * count < events
        seen = self._believed if is_believed else self._all
        measured.sketches, measured.first_ms, measured.last_ms = seen.sketches, seen.first_ms, seen.last_ms
        if count and is_believed:
            measured.left_out["ahead_of_clock"] += count
            partitions = tuple(name for name, _ in self._ahead.most_common())
            measured.ahead = ClocksAhead(events=count, furthest_ms=self._furthest_ms, partitions=partitions)
