"""What became of every event of a simulation, and the figures of its results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from slackwater.observe.metrics.record import BatchRecord

ACCOUNTS: Final = ("on_time", "corrected", "ignored", "no_window", "late", "dead", "on_the_way")
"""The accounts of events: each event is in exactly one."""


@dataclass(frozen=True, kw_only=True)
class SimulationAccount:
    """The figures of a simulation."""

    events: int
    """All events that happened."""
    on_time: int
    """Events counted in a window before its result."""
    corrected: int
    """Events counted in a window after its result, which was corrected."""
    ignored: int
    """Events that arrived for a window that its trigger had finished."""
    no_window: int
    """Events in the gap between two windows."""
    late: int
    """Events that arrived after all their windows were forgotten."""
    dead: int
    """Dead letters."""
    on_the_way: int
    """Events that had not arrived when the simulation ended."""
    panes: int
    """Results, including corrections."""
    windows: int
    """Windows with at least one result, counted per device."""
    delay_ms: tuple[int | None, int | None, int | None]
    """p50, p95 and p99 of the time from a window's end to its result; None without results."""
    oldest_open_ms: int
    """How long before the end the oldest window without a result began; 0 if there is none."""
    state_rows: int
    """The largest number of state rows."""
    state_bytes: int = field(compare=False)
    """The largest size of the state in bytes, which depends slightly on the order in which rows are packed."""

    @property
    def panes_per_window(self) -> float:
        """The mean number of results per window."""
        return self.panes / self.windows if self.windows else 0.0

    def share(self, account: str) -> float:
        """Return the share of all events in an account."""
        return int(getattr(self, account)) / self.events if self.events else 0.0

    @classmethod
    def of(
        cls,
        events: int,
        counts: Counter[str],
        records: Sequence[BatchRecord],
        *,
        panes: pl.DataFrame,
        state: pl.DataFrame,
        now_ms: int,
    ) -> SimulationAccount:
        """Return the account of a run from the counts, panes and state of its engine."""
        shown = panes.filter(~pl.col("is_retraction"))
        first = shown.filter(pl.col("pane") == "on_time")
        delays = (first["shown"] - first["window_end"].dt.epoch("ms")).sort()
        unshown = state.filter(pl.col("panes_shown") == 0)["window_start"].dt.epoch("ms")
        steps = [step for record in records for step in record.steps.values()]
        return cls(
            events=events,
            on_time=counts["on_time"],
            corrected=counts["refired"],
            ignored=counts["ignored"],
            no_window=counts["no_window"],
            late=counts["late"],
            dead=sum(record.dead.total() for record in records),
            on_the_way=events - sum(record.rows for record in records),
            panes=shown.height,
            windows=shown.select("device", "window_start").unique().height,
            delay_ms=(_quantile(delays, 0.5), _quantile(delays, 0.95), _quantile(delays, 0.99)),
            oldest_open_ms=0 if unshown.is_empty() else max(0, now_ms - int(unshown.min())),  # type: ignore[arg-type]  # whole numbers: Polars says any
            state_bytes=max((step.state_bytes for step in steps), default=0),
            state_rows=max((step.state_rows for step in steps), default=0),
        )


def _quantile(ordered: pl.Series, part: float) -> int | None:
    """Return the smallest value that covers this share of the sorted values."""
    return None if ordered.is_empty() else int(ordered[math.ceil(part * ordered.len()) - 1])
