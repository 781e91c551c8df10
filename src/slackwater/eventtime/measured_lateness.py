"""The lateness of the rows of a stream, measured as they arrive.

The lateness of a row is how far its event time is behind the largest event time that was seen before
it in its own partition, in order of arrival; it is 0 for a row that is the newest so far. With an
out-of-orderness of X, exactly the rows with a lateness above X are behind the watermark.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from slackwater.eventtime.sketch import BLOCK, Ints, Sketch

AHEAD_MS: Final = 600_000
"""How far an event may be ahead of the time it was received; beyond that, its clock is considered wrong."""


class LatenessSketch(Sketch):
    """A sketch of lateness in milliseconds; it is 0 for rows that were the newest of their partition on arrival."""

    def observe(self, times_ms: Ints, newest_before_ms: int) -> int:
        """Add rows of one partition, by their event times in order of arrival.

        `newest_before_ms` is the largest time of the partition before them (`MIN_MS` if none).
        Returns the largest time including them, for the next call.
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
