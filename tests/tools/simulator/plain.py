"""What becomes of the events of a simulation, recomputed event by event, without the engine.

Only the events and when they arrive are the simulator's; watermarks, windows, sessions and accounts are worked out here
again, the slow and obvious way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from slackwater.tools.simulator.events import START_MS, made_events
from slackwater.tools.simulator.settings import Settings

BEGINNING = -(1 << 60)


@dataclass(frozen=True, kw_only=True)
class Event:
    id: int
    device: str
    ts: int
    partition: str


@dataclass(kw_only=True)
class Partition:
    newest: int
    active_at: int
    is_idle: bool = False


@dataclass(kw_only=True)
class Plain:
    """One run: `fates` has the account of each event by its number."""

    settings: Settings
    fates: dict[int, str] = field(default_factory=dict)
    watermark: int = BEGINNING
    partitions: dict[str, Partition] = field(default_factory=dict)
    kept: dict[str, list[int]] = field(default_factory=dict)
    """Of sessions, the times that each device still has in its state."""

    def run(self) -> Counter[str]:
        events = made_events(self.settings).to_dicts()
        for number in range(self.settings.batches):
            before = START_MS + number * self.settings.batch_every_ms
            now = before + self.settings.batch_every_ms
            arrived = [row for row in events if row["arrived"] <= now and (number == 0 or row["arrived"] > before)]
            self.batch([Event(**{name: row[name] for name in Event.__annotations__}) for row in arrived], now)
        for row in events:
            self.fates.setdefault(row["id"], "on_the_way")
        return Counter(self.fates.values())

    def batch(self, arrived: list[Event], now: int) -> None:
        ahead = self.settings.max_ahead_ms
        usable = [event for event in arrived if ahead is None or event.ts <= now + ahead]
        for event in arrived:
            self.fates[event.id] = "dead"
        if self.settings.window == "session":
            self.judge_sessions(usable)
        else:
            for event in usable:
                self.fates[event.id] = self.judged(event)
        self.advance(usable, now)

    def judged(self, event: Event) -> str:
        gone = self.watermark - self.settings.allowed_lateness_ms
        size = self.settings.window_size_ms
        hop = self.settings.hop_ms if self.settings.window == "hopping" else size
        newest = event.ts // hop * hop
        ends = [start + size for start in range(newest, event.ts - size, -hop)]
        remembered = [end for end in ends if end > gone]
        if not remembered:
            return "late"
        return "corrected" if any(end <= self.watermark for end in remembered) else "on_time"

    def judge_sessions(self, arrived: list[Event]) -> None:
        gap, gone = self.settings.window_size_ms, self.watermark - self.settings.allowed_lateness_ms
        for device in {event.device for event in arrived} | set(self.kept):
            new = [event for event in arrived if event.device == device]
            # First, everyone: one whose session would be forgotten is late. Then, those that were taken.
            known = [ts for ts, end in self.sessions(self.kept.get(device, [])) if end > gone]
            everyone = dict(self.sessions(known + [event.ts for event in new]))
            taken = [event for event in new if event.ts + gap > gone or everyone[event.ts] > gone]
            together = dict(self.sessions(known + [event.ts for event in taken]))
            for event in new:
                if event not in taken:
                    self.fates[event.id] = "late"
                else:
                    self.fates[event.id] = "corrected" if together[event.ts] <= self.watermark else "on_time"
            self.kept[device] = known + [event.ts for event in taken]

    def sessions(self, times: list[int]) -> list[tuple[int, int]]:
        """Return each time with the end of its session."""
        found: list[list[int]] = []
        longest = self.settings.max_length_ms
        for ts in sorted(times):
            begins = not found or ts - found[-1][-1] > self.settings.window_size_ms
            if begins or (longest is not None and ts >= found[-1][0] + longest):
                found.append([])
            found[-1].append(ts)
        ends = [own[-1] + self.settings.window_size_ms for own in found]
        if longest is not None:
            ends = [min(end, own[0] + longest) for end, own in zip(ends, found, strict=True)]
        return [(ts, end) for end, own in zip(ends, found, strict=True) for ts in own]

    def advance(self, usable: list[Event], now: int) -> None:
        for event in usable:
            known = self.partitions.setdefault(event.partition, Partition(newest=event.ts, active_at=now))
            known.newest, known.active_at = max(known.newest, event.ts), now
        idle_after = self.settings.idle_after_ms
        for known in self.partitions.values():
            known.is_idle = idle_after is not None and now - known.active_at >= idle_after
        live = [known.newest for known in self.partitions.values() if not known.is_idle]
        every = [known.newest for known in self.partitions.values()]
        newest = min(live) if live else max(every, default=BEGINNING)
        self.watermark = max(self.watermark, newest - self.settings.out_of_orderness_ms)
