"""A slow, obvious model of where every record ends: late, in no window, or in which windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slackwater.windows import (
    CumulativeWindow,
    GlobalWindow,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
)
from tests.property.streams import Record, Setup

Place = tuple[str | None, int | None, int | None]
"""A key's window: key, start, end."""


def windows_of(window: Window, ts_ms: int) -> list[tuple[int, int]]:
    """Return the aligned windows that hold `ts_ms`, found by trying every start around it."""
    match window:
        case TumblingWindow(size_ms=size, offset_ms=offset):
            starts = [s for s in range(ts_ms - size + 1, ts_ms + 1) if (s - offset) % size == 0]
            return [(s, s + size) for s in starts]
        case HoppingWindow(size_ms=size, every_ms=every, offset_ms=offset):
            starts = [s for s in range(ts_ms - size + 1, ts_ms + 1) if (s - offset) % every == 0]
            return [(s, s + size) for s in starts]
        case CumulativeWindow(size_ms=size, every_ms=every, offset_ms=offset):
            [start] = [s for s in range(ts_ms - size + 1, ts_ms + 1) if (s - offset) % size == 0]
            return [(start, e) for e in range(start + every, start + size + 1, every) if e > ts_ms]
    raise AssertionError(window)


@dataclass
class Session:
    start: int
    end: int
    ids: list[int]


@dataclass
class Model:
    """Takes batches as the engine does, and remembers the fate of every record."""

    setup: Setup
    late: list[int] = field(default_factory=list)
    no_window: list[int] = field(default_factory=list)
    on_time: list[int] = field(default_factory=list)
    refired: list[int] = field(default_factory=list)
    windows: dict[Place, list[int]] = field(default_factory=dict)
    """All rows that each window took."""
    _sessions: dict[str | None, list[Session]] = field(default_factory=dict)
    _instants: list[Record] = field(default_factory=list)

    @property
    def accepted(self) -> set[int]:
        return {*self.on_time, *self.refired}

    def batch(self, records: Sequence[Record], watermark_ms: int) -> None:
        """Judge the records of one batch by the watermark in force."""
        window = self.setup.window
        if isinstance(window, SessionWindow):
            self._forget(watermark_ms)
            self._add_to_sessions(window, records, watermark_ms)
            return
        for record in records:
            if isinstance(window, GlobalWindow):
                self.on_time.append(record.id)
                self.windows.setdefault((record.key, None, None), []).append(record.id)
            elif isinstance(window, SlidingWindow):
                self._judge(record, [(record.ts_ms + 1 - window.size_ms, record.ts_ms + 1)], watermark_ms)
            elif not (places := windows_of(window, record.ts_ms)):
                self.no_window.append(record.id)
            else:
                self._judge(record, places, watermark_ms)

    def finish(self) -> None:
        """End the input: every session is over, and every instant sees all that it will ever see."""
        for key, sessions in self._sessions.items():
            self.windows |= {(key, session.start, session.end): session.ids for session in sessions}
        if isinstance(self.setup.window, SlidingWindow):
            size = self.setup.window.size_ms
            self.windows = {
                (at.key, at.ts_ms + 1 - size, at.ts_ms + 1): [
                    other.id for other in self._instants if other.key == at.key and -size < other.ts_ms - at.ts_ms <= 0
                ]
                for at in self._instants
            }

    def _judge(self, record: Record, places: list[tuple[int, int]], watermark_ms: int) -> None:
        kept = [place for place in places if place[1] + self.setup.lateness_ms > watermark_ms]
        if not kept:
            self.late.append(record.id)
            return
        (self.refired if any(end <= watermark_ms for _, end in kept) else self.on_time).append(record.id)
        self._instants.append(record)
        for start, end in kept:
            self.windows.setdefault((record.key, start, end), []).append(record.id)

    def _forget(self, watermark_ms: int) -> None:
        for key, sessions in self._sessions.items():
            for session in list(sessions):
                if session.end + self.setup.lateness_ms <= watermark_ms:
                    sessions.remove(session)
                    self.windows[key, session.start, session.end] = session.ids

    def _add_to_sessions(self, window: SessionWindow, records: Sequence[Record], watermark_ms: int) -> None:
        assert window.gap_ms is not None
        suspects = []
        for record in records:
            end = record.ts_ms + window.gap_ms
            if end + self.setup.lateness_ms <= watermark_ms:
                suspects.append(record)
                continue
            (self.refired if end <= watermark_ms else self.on_time).append(record.id)
            self._merge(record, window)
        while saved := [record for record in suspects if self._touched(record, window)]:
            for record in saved:
                self.refired.append(record.id)
                self._merge(record, window)
                suspects.remove(record)
        self.late += [record.id for record in suspects]

    def _touched(self, record: Record, window: SessionWindow) -> list[Session]:
        start, end = record.ts_ms, record.ts_ms + (window.gap_ms or 0)
        known = self._sessions.get(record.key, [])
        if window.touching == "merge":
            return [session for session in known if session.start <= end and start <= session.end]
        return [session for session in known if session.start < end and start < session.end]

    def _merge(self, record: Record, window: SessionWindow) -> None:
        merged = Session(record.ts_ms, record.ts_ms + (window.gap_ms or 0), [record.id])
        for session in self._touched(record, window):
            merged.start, merged.end = min(merged.start, session.start), max(merged.end, session.end)
            merged.ids += session.ids
            self._sessions[record.key].remove(session)
        self._sessions.setdefault(record.key, []).append(merged)
