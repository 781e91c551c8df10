"""How late the rows of a stream are, measured as it comes.

The lateness of a row is how far its event time lies behind the largest event time that was seen before
it in its own partition, in order of arrival; it is 0 for a row that is the newest so far. An
out-of-orderness of X leaves exactly the rows with a lateness above X behind the watermark.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from slackwater.clock.sketch import BLOCK, Ints, Sketch

AHEAD_MS: Final = 600_000
"""An event that was so far ahead of the time it was received at has its time from a clock that is wrong."""


class LatenessSketch(Sketch):
    """A sketch of lateness in milliseconds; 0 are the rows that were the newest of their partition when they came."""

    def observe(self, times_ms: Ints, newest_before_ms: int) -> int:
        """Add rows of one partition, by their event times in order of arrival.

        `newest_before_ms` is the largest time that the partition had before them (`MIN_MS` if none).
        Returns the largest time it has after them, which is what the next call needs.
        """
        newest_ms = newest_before_ms
        for start in range(0, len(times_ms), BLOCK):
            times = times_ms[start : start + BLOCK]
            late_by = np.maximum.accumulate(times)
            if newest_ms > times[0]:
                np.maximum(late_by, newest_ms, out=late_by)
            newest_ms = int(late_by[-1])
            late_by -= times
            self._count(late_by)
        return newest_ms
