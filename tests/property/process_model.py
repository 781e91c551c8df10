"""A slow, obvious model of a process: plain Python, one dictionary for each key.

What an event does is in its `op`; the process under test (`Probe`) and the model each read it by themselves.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import NamedTuple

END = 1 << 60
OPS = (
    "set", "clear", "push", "join", "leave", "put", "drop", "replace", "timer", "named", "later", "untimer", "unname",
    "fail", "mistype", "emit", "look",
)  # fmt: skip


class Event(NamedTuple):
    """One event of the log."""

    id: int
    key: str | None
    ts: int
    op: str
    n: int
    partition: str


@dataclass
class Key:
    """What is known of one key; what was written is beside each value."""

    value: tuple[int, int] | None = None
    items: list[tuple[int, int]] = field(default_factory=list)
    members: dict[str, int] = field(default_factory=dict)
    table: dict[str, tuple[int, int]] = field(default_factory=dict)
    timers: dict[tuple[str, str, int], tuple[int, int]] = field(default_factory=dict)
    """By clock, name and, without a name, time: when it fires, and what time it was for the call that set it."""


class FailedError(Exception):
    """The event fails."""


@dataclass
class Model:
    """What a process shows, by key, in the order it is shown."""

    ttl_ms: int | None
    in_order: bool
    watermark: int = -END
    now: int = 0
    keys: dict[str | None, Key] = field(default_factory=dict)
    waiting: list[Event] = field(default_factory=list)
    shown: dict[str | None, list[tuple[str, str, int]]] = field(default_factory=dict)
    emitted: dict[str | None, list[int]] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    failed_timers: list[tuple[str | None, int]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    clock: int = 0
    """What time it is for the state of a key, by event time."""
    written: int = 0
    is_ending: bool = False
    """Whether the last timers fire, and none may be set."""
    dropped: int = 0

    def batch(self, events: list[Event], watermark: int, now: int) -> None:
        """Do one batch."""
        moved, self.watermark, self.now = watermark > self.watermark, max(watermark, self.watermark), now
        for name in sorted({*self.keys, *(event.key for event in self.waiting)}, key=str):
            self._advance(name, moved=moved)
        for event in sorted(events, key=lambda event: event.partition):
            if not self.in_order:
                self.clock = self.written = max(event.ts, self.watermark)
                self._event(event)
            elif event.ts < self.watermark:
                self.late.append(event.id)
            else:
                self.waiting.append(event)
        for key in self.keys.values():
            self._forget(key)

    def _advance(self, name: str | None, *, moved: bool) -> None:
        self.is_ending = False
        mine = [event for event in self.waiting if event.key == name and event.ts < self.watermark]
        for event in sorted(mine, key=lambda event: (event.ts, event.partition, event.id)):
            self.waiting.remove(event)
            self._fire(name, "event", event.ts)
            self.clock = self.written = event.ts
            self._event(event)
        self.is_ending = self.watermark >= END
        if moved:
            self._fire(name, "event", self.watermark)
        self._fire(name, "processing", END if self.watermark >= END else self.now)
        if self.watermark >= END:
            self.keys.pop(name, None)

    def _fire(self, name: str | None, clock: str, until: int) -> None:
        last: tuple[int, str] | None = None
        before: set[tuple[str, str, int]] = set()
        while True:
            key = self.keys.setdefault(name, Key())
            due = sorted((at, slot[1], slot, since) for slot, (at, since) in key.timers.items() if slot[0] == clock)
            # An event at the time of an event-time timer comes first.
            last_at = until if clock == "processing" else until - 1
            due = [
                each for each in due if each[0] <= last_at and (last is None or each[:2] > last or each[2] in before)
            ]
            if not due:
                return
            at, called, slot, since = due[0]
            before = {each[2] for each in due[1:]}
            del key.timers[slot]
            last = (at, called)
            event_time = at
            if clock == "processing":
                event_time = since if self.watermark >= END else max(since, self.watermark)
                self.clock = self.written = event_time
            else:
                self.clock = self.written = max(at, since)
            saved = copy.deepcopy(key)
            try:
                self._timer(name, key, at, called, event_time)
            except FailedError:
                self.keys[name] = saved
                self.failed_timers.append((name, at))

    def _timer(self, name: str | None, key: Key, at: int, called: str, event_time: int) -> None:
        if self._value(key) == 3:
            raise FailedError
        key.items.append((-1, self.written))
        if (value := self._value(key)) is not None and key.value is not None:
            key.value = (value + 1, max(self.written, key.value[1]))
        if called == "t":
            key.timers.pop(("event", "u", 0), None)
            if self.is_ending:
                self.dropped += 1
            else:
                key.timers["event", "u", 0] = (at + 7, self.written)
        self._show(name, key, f"timer {called} {at}", event_time)

    def _event(self, event: Event) -> None:
        key = self.keys.setdefault(event.key, Key())
        saved, emitted = copy.deepcopy(key), len(self.emitted.get(event.key, []))
        try:
            self._do(event, key)
            self._show(event.key, key, str(event.id), event.ts)
        except FailedError:
            self.keys[event.key] = saved
            del self.emitted.setdefault(event.key, [])[emitted:]
            self.failed.append(event.id)

    def _do(self, event: Event, key: Key) -> None:  # noqa: C901, PLR0912  one branch for each thing that can be done
        n, name = event.n, str(event.n % 3)
        match event.op:
            case "set":
                key.value = (n, max(self.written, key.value[1] if key.value else -END))
            case "clear":
                key.value = None
            case "push":
                key.items.append((n, self.written))
            case "join":
                key.members[name] = self.now
            case "leave":
                key.members.pop(name, None)
            case "put":
                key.table[name] = (n, max(self.written, key.table.get(name, (0, -END))[1]))
            case "drop":
                key.table.pop(name, None)
            case "replace":
                at = max([self.written, *(at for _, at in key.items)])
                key.items = [(value, at) for value, was in key.items if self._lives(was, self.clock)] + [(n, at)]
            case "timer":
                key.timers["event", "", event.ts + n] = (event.ts + n, self.written)
            case "named":
                key.timers["event", "t", 0] = (event.ts + n, self.written)
            case "later":
                key.timers["processing", "", self.now + n] = (self.now + n, self.written)
            case "untimer":
                key.timers.pop(("event", "", event.ts + n), None)
            case "unname":
                key.timers.pop(("event", "t", 0), None)
            case "emit":
                self.emitted.setdefault(event.key, []).append(event.id)
            case "fail" | "mistype":
                raise FailedError

    def _lives(self, at: int, now: int) -> bool:
        return self.ttl_ms is None or now <= at + self.ttl_ms

    def _forget(self, key: Key) -> None:
        """Let go of what is over by the watermark: not even a timer that was set in the past sees it."""
        if key.value is not None and not self._lives(key.value[1], self.watermark):
            key.value = None
        key.items = [item for item in key.items if self._lives(item[1], self.watermark)]
        key.table = {name: each for name, each in key.table.items() if self._lives(each[1], self.watermark)}

    def _value(self, key: Key) -> int | None:
        return key.value[0] if key.value is not None and self._lives(key.value[1], self.clock) else None

    def _show(self, name: str | None, key: Key, what: str, event_time: int) -> None:
        items = [value for value, at in key.items if self._lives(at, self.clock)]
        members = sorted(member for member, at in key.members.items() if self._lives(at, self.now))
        table = sorted((each, value) for each, (value, at) in key.table.items() if self._lives(at, self.clock))
        self.shown.setdefault(name, []).append((what, f"{self._value(key)} {items} {members} {table}", event_time))
