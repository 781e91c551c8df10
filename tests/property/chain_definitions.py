"""The steps of a chain as the model reads them: windows, triggers and what a step does with late rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

BEGINNING: Final = -(10**15)
END: Final = 10**15
"""The ends of time: before the first watermark, and the final watermark, which no delay moves."""


@dataclass(frozen=True)
class Row:
    key: object
    ts: int
    tag: str
    """Names the row wherever it turns up."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Which rows belong together; what a kind does not need is 0."""

    kind: Literal["tumbling", "hopping", "cumulative", "sliding", "session", "global"]
    size: int = 0
    every: int = 0
    offset: int = 0
    gap: int = 0
    touching: Literal["merge", "separate"] = "merge"
    max_length: int = 0

    def places(self, ts: int) -> list[tuple[int, int]]:
        """Return the windows [start, end) of a row at `ts`, found by trying every start around it."""
        match self.kind:
            case "tumbling" | "hopping":
                every = self.every or self.size
                starts = [start for start in range(ts - self.size + 1, ts + 1) if (start - self.offset) % every == 0]
                return [(start, start + self.size) for start in starts]
            case "cumulative":
                [start] = [s for s in range(ts - self.size + 1, ts + 1) if (s - self.offset) % self.size == 0]
                ends = range(start + self.every, start + self.size + 1, self.every)
                return [(start, end) for end in ends if end > ts]
            case "sliding":
                return [(ts + 1 - self.size, ts + 1)]
            case "session":
                return [(ts, ts + self.gap)]
            case "global":
                return [(BEGINNING, END)]


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """When a window shows a pane."""

    early_count: int | None = None
    """So many rows came since the last pane, before the window is complete."""
    early_every: int | None = None
    """So much processing time passed, counted from the first row, and something is new."""
    early_event_time: int | None = None
    """The watermark passed a multiple of this that lies after the first row and before the window's last instant."""
    on_time: bool = True
    """The window is complete."""
    repeat_unchanged: bool = True
    """It shows the on-time pane even if nothing came since the last early one."""
    late_count: int | None = 1
    """So many rows came since the last pane, after the window was complete."""
    is_final: bool = False
    """Rows that come after the window is complete are ignored."""
    once: bool = False
    """The first pane is the last: rows that come after it are ignored."""


@dataclass(frozen=True, kw_only=True)
class Step:
    window: Window
    trigger: Trigger = field(default_factory=Trigger)
    lateness: int = 0
    accumulation: Literal["discarding", "accumulating", "retracting"] = "accumulating"
    on_close: Literal["flush", "discard"] = "flush"
    """What becomes of rows that no trigger has shown when their window is forgotten."""

    @property
    def may_update(self) -> bool:
        """Whether a window may show two panes, so that a step behind this one would count rows twice."""
        trigger = self.trigger
        if self.window.kind == "sliding":
            return self.lateness > 0
        early = trigger.early_count or trigger.early_every or trigger.early_event_time
        return not trigger.once and bool(early or (self.lateness > 0 and not trigger.is_final))
