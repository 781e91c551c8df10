"""The watermarks and the processing time that a keyed step works by."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.base.times import MIN_MS


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """The watermarks and the processing time that a keyed step works by in one batch.

    The first stage uses one watermark to judge rows and to fire, and fires before it adds the batch's
    rows. A chained stage judges by its previous watermark, adds, then fires: its input was produced in
    the same batch by the stage before it.
    """

    previous_ms: int
    watermark_ms: int
    now_ms: int
    fire_first: bool = True
    forgotten_ms: int = MIN_MS
    """State up to this `__end` was forgotten in earlier batches."""
    keeps_too_much: bool = False
    """Whether state was kept for a longer lateness than is now allowed."""

    @property
    def judge_ms(self) -> int:
        """The watermark that decides whether a row of this batch is late."""
        return self.watermark_ms if self.fire_first else self.previous_ms
