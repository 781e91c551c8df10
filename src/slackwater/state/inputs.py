"""What FRONT sends to a keyed step: blobs of combined rows, in the order of the log."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from slackwater.state.packing import unpack


@dataclass(frozen=True, kw_only=True)
class Blob:
    """A packed frame of one step and key group; `order` places it among the batch's blobs."""

    order: str
    rows: int
    min_end_ms: int
    max_end_ms: int
    payload: bytes


@dataclass(kw_only=True)
class GroupRows:
    """One batch's input to one step in one key group, each list sorted by `order`."""

    open: list[Blob] = field(default_factory=list)
    """Combined rows of windows that the watermark has not reached."""
    behind: list[Blob] = field(default_factory=list)
    """Combined rows of windows that are complete but not forgotten."""
    suspect: list[Blob] = field(default_factory=list)
    """Whole rows that only a step's state can judge (sessions that may merge)."""

    def frame(self, step: str, blobs: list[Blob]) -> pl.DataFrame | None:
        """Return the rows of `blobs` in order, or None if there are none."""
        frames = [unpack(blob.payload, step) for blob in sorted(blobs, key=lambda blob: blob.order)]
        return pl.concat(frames) if frames else None
