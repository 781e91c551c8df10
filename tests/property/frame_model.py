"""A slow, obvious model of a process of frames that adds up: one key after the other, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.property.process_model import END, Event


class Held(NamedTuple):
    """The state of one key."""

    total: int
    seen: int
    at: int


class Shown(NamedTuple):
    """One result: what a batch made of a key."""

    key: str | None
    ids: str
    total: int
    seen: int
    event_time: int


@dataclass
class FrameModel:
    """What a process of frames shows, and what becomes of every event."""

    ttl_ms: int | None
    in_order: bool
    watermark: int = -END
    keys: dict[str | None, Held] = field(default_factory=dict)
    waiting: list[Event] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def batch(self, events: list[Event], watermark: int) -> None:
        """Do one batch."""
        self.watermark = max(watermark, self.watermark)
        arrived = sorted(events, key=lambda event: event.partition)
        if not self.in_order:
            self._forget()
            self._work(arrived)
            return
        ready = [event for event in self.waiting if event.ts < self.watermark]
        self.waiting = [event for event in self.waiting if event.ts >= self.watermark]
        self._work(sorted(ready, key=lambda event: (event.ts, event.partition, event.id)))
        self._forget()
        self.late += [event.id for event in arrived if event.ts < self.watermark]
        self.waiting += [event for event in arrived if event.ts >= self.watermark]

    def _work(self, events: list[Event]) -> None:
        for key in dict.fromkeys(event.key for event in events):
            mine = [event for event in events if event.key == key]
            if any(event.op in ("fail", "mistype") for event in mine):
                self.failed += [event.id for event in mine]
                continue
            held = self.keys.pop(key, None)
            first = min(event.ts for event in mine)
            if held is None or not self._lives(held, first if self.in_order else max(first, self.watermark)):
                held = Held(0, 0, 0)
            last = max(event.ts for event in mine)
            total, seen = held.total + sum(event.n for event in mine), held.seen + len(mine)
            self.shown.append(Shown(key, " ".join(str(event.id) for event in mine), total, seen, last))
            if mine[-1].op != "clear":
                at = last if self.in_order else max(last, self.watermark)
                self.keys[key] = Held(total, seen, max(at, held.at))

    def _lives(self, held: Held, now: int) -> bool:
        return self.ttl_ms is None or now <= held.at + self.ttl_ms

    def _forget(self) -> None:
        self.keys = {key: held for key, held in self.keys.items() if self._lives(held, self.watermark)}
