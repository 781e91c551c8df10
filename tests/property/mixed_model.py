"""What mixed steps mean: plain Python over all rows at once, in the order of event time; there are no batches.

Each function returns the rows that a step shows, with their places, and the dead letters.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.property.mixed_code import FAILS_ON
from tests.property.mixed_places import joined, key_hash, of_match, of_process, of_window
from tests.property.mixed_steps import AsOf, Dedup, Join, Match, Process, Step, Windows
from tests.property.mixed_values import T0, Key, KeyKind, Row, in_order, is_beyond_python, pick

Dead = tuple[str, Any]
"""The reason of a dead letter, and the tag of the row, or for a timer its time."""


@dataclass
class Shown:
    """What a step shows: rows, rows that it withdraws, and dead letters."""

    rows: list[Row] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)


def model(step: Step, inputs: Sequence[list[Row]], kind: KeyKind, name: str) -> Shown:
    """Return what a step makes of its rows."""
    return _MODELS[type(step)](step, inputs, kind, name)


def _by_key(rows: Sequence[Row], column: str) -> dict[Key, list[Row]]:
    found = defaultdict(list)
    for row in in_order(rows):
        found[row.key(column)].append(row)
    return dict(found)


def _other(step: Step, kind: KeyKind, key: Key, at: int) -> dict[str, Any]:
    return {"a": key, "b": at % 3} if step.key == "a" else {"a": pick(kind, at), "b": key}


def pair(step: Step, name: str, left: Row | None, right: Row | None, at: int) -> Row:
    """Return the result of a join for two rows, or one."""
    mine, theirs = (left or right), (right or left)
    assert mine is not None
    assert theirs is not None
    tags = ["-" if row is None else row.tag for row in (left, right)]
    v = sum((row.v or 0) for row in (left, right) if row is not None) % 10
    other = mine.key(step.other) if mine.key(step.other) is not None else theirs.key(step.other)
    keys = {step.key: mine.key(step.key), step.other: other}
    return Row(f"({tags[0]}+{tags[1]})", v=v, at=at, place=joined(name, left, right), **keys)  # type: ignore[arg-type]  # by column


def _join(step: Join, inputs: Sequence[list[Row]], kind: KeyKind, name: str) -> Shown:
    left, right = inputs
    out = Shown()
    if (condition := step.condition) is not None:
        out.dead += [("failed", row.tag) for row in left if condition.left_fails(row)]
        out.dead += [("failed", row.tag) for row in right if condition.right_fails(row)]
        left = [row for row in left if not condition.left_fails(row)]
        right = [row for row in right if not condition.right_fails(row)]

    def matches(mine: Row, other: Row) -> bool:
        key = mine.key(step.key)
        is_near = step.lower <= other.at - mine.at <= step.upper
        return key is not None and key == other.key(step.key) and is_near and (
            condition is None or condition.holds(mine, other)
        )  # fmt: skip

    for mine in left:
        met = [other for other in right if matches(mine, other)]
        out.rows += [pair(step, name, mine, other, max(mine.at, other.at)) for other in met]
        if not met and step.how in ("left", "full"):
            out.rows.append(pair(step, name, mine, None, mine.at))
    if step.how in ("right", "full"):
        alone = [other for other in right if not any(matches(mine, other) for mine in left)]
        out.rows += [pair(step, name, None, other, other.at) for other in alone]
    return out


def _as_of(step: AsOf, inputs: Sequence[list[Row]], kind: KeyKind, name: str) -> Shown:
    left, right = inputs
    out = Shown()
    versions = _by_key(right, step.key)
    for row in left:
        key = row.key(step.key)
        known = [] if key is None else [each for each in versions.get(key, []) if each.at <= row.at]
        version = known[-1] if known else None
        if version is not None and step.ttl is not None and row.at - version.at > step.ttl:
            version = None
        if version is not None and step.deletes and version.v == 3:
            version = None
        if version is not None or step.how == "left":
            out.rows.append(pair(step, name, row, version, row.at))
    return out


def _dedup(step: Dedup, inputs: Sequence[list[Row]], kind: KeyKind, name: str) -> Shown:
    [rows] = inputs
    if step.keep == "first":
        rows = sorted(rows, key=lambda row: row.place)  # one partition: its offsets
        found: dict[Key, Row] = {}
        for row in rows:
            found.setdefault(row.key(step.key), row)
        return Shown(list(found.values()))
    at = 0 if step.keep == "first_by_time" else -1
    return Shown([mine[at] for mine in _by_key(rows, step.key).values()])


@dataclass(frozen=True)
class _Ranked:
    """A row for the slow matcher, which breaks ties by number."""

    key: Key
    ts: int
    v: int | None
    b: int | None
    id: int
    row: Row
    partition: str = ""


def _match(step: Match, inputs: Sequence[list[Row]], kind: KeyKind, name: str) -> Shown:
    pattern = step.pattern
    out = Shown(dead=[("failed", row.tag) for row in inputs[0] if pattern.fails(row)])
    sound = in_order([row for row in inputs[0] if not pattern.fails(row)])
    ranked = [_Ranked(row.key(step.key), row.at, row.v, row.b, at, row) for at, row in enumerate(sound)]
    for match in pattern.sought.matches(ranked):  # type: ignore[arg-type]  # what the matcher looks at
        taken = [(number, each.row) for number, each in match]  # type: ignore[attr-defined]  # as above
        parts, values = [], list[int | None]()
        for number, each in enumerate(pattern.shown):
            mine = [row for at, row in taken if at == number]
            tags = [row.tag for row in mine]
            parts.append(",".join(tags) if each.is_repeated else (tags or ["-"])[0])
            values += [row.v for row in mine[:1]]
        v = next((value for value in values if value is not None), 0)
        first, last = taken[0][1], taken[-1][1]
        at = first.at + pattern.within if pattern.is_absence else last.at
        keys = _other(step, kind, first.key(step.key), v)
        out.rows.append(Row(f"m({'|'.join(parts)})", v=v, at=at, place=of_match(name, first, last), **keys))
    return out


@dataclass
class _State:
    count: int = 0
    seen: list[int] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)
    timers: dict[tuple[str, int], int] = field(default_factory=dict)
    """By name and, without one, time: when they fire."""


class _Walk:
    """The walk of a process over the events of one key."""

    def __init__(self, step: Process, kind: KeyKind, key: Key, name: str) -> None:
        self.step, self.kind, self.key, self.name = step, kind, key, name
        self.state, self.out = _State(), Shown()
        self.hash = key_hash(step, kind, key)

    def event(self, row: Row) -> None:
        if is_beyond_python(self.kind, row.a):
            self.out.dead.append(("out_of_range", row.tag))
            return
        v, state = row.v or 0, copy.deepcopy(self.state)
        state.count += 1
        state.seen.append(v)
        state.known[v] = state.known.get(v, 0) + 1
        if self.step.has_timers:
            if v in (1, 4):
                state.timers["", row.at + 3] = row.at + 3
            if v == 5:
                state.timers["t", 0] = row.at + 6
            if v == 8:
                state.timers.pop(("t", 0), None)
        if v == FAILS_ON:
            self.out.dead.append(("failed", row.tag))
            return
        self.state = state
        tag = f"<{row.tag} {state.count} {sum(state.seen)} {state.known[v]}>"
        for more in ("", "again") if v == 6 else ("",):
            self._show(tag + more, (v + state.count) % 10, row.at, row)

    def fire(self, before: int) -> None:
        """Fire the timers before a time: an event of the same time comes before a timer."""
        timers = self.state.timers
        while due := sorted((at, name, slot) for slot, at in timers.items() for name in slot[:1] if at < before):
            at, name, slot = due[0]
            del timers[slot]
            n = self.state.count
            if n % 4 == 3:
                self.out.dead.append(("timer_failed", at))
                continue
            self.state.count += 1
            self._show(f"<timer {name} {at - T0} {n}>", n % 10, at, None)

    def _show(self, tag: str, v: int, at: int, row: Row | None) -> None:
        keys = _other(self.step, self.kind, self.key, v)
        place = of_process(self.name, self.hash, row, len(self.out.rows))
        self.out.rows.append(Row(tag, v=v, at=at, place=place, **keys))


def _process(step: Process, inputs: Sequence[list[Row]], kind: KeyKind, name: str) -> Shown:
    out = Shown()
    for key, rows in _by_key(inputs[0], step.key).items():
        walk = _Walk(step, kind, key, name)
        mine = rows if step.order == "event_time" else sorted(rows, key=lambda row: row.place)
        for row in mine:
            walk.fire(row.at)
            walk.event(row)
        walk.fire(1 << 60)
        out.rows += walk.out.rows
        out.dead += walk.out.dead
    return out


def _windows(step: Windows, inputs: Sequence[list[Row]], kind: KeyKind, name: str) -> Shown:
    out = Shown()
    fails = [row for row in inputs[0] if step.own != "none" and row.v == FAILS_ON]
    out.dead += [("failed", row.tag) for row in fails]
    sound = [row for row in inputs[0] if row not in fails]
    for key, rows in _by_key(sound, step.key).items():
        for start, end, mine in _sessions(step, rows) if step.gap else _tumbling(step, rows):
            values = [row.v for row in mine if row.v is not None]
            v = (sum(values) * (1 if step.own == "none" else 2) + (values[-1] if values else 0)) % 10
            tag = f"[{start} {mine[0].tag}: {' '.join(sorted(row.tag for row in mine))}]"
            place = of_window(step, name, kind, key, (start, end))
            out.rows.append(Row(tag, v=v, at=end - 1, place=place, **_other(step, kind, key, v)))
    return out


def _tumbling(step: Windows, rows: list[Row]) -> list[tuple[int, int, list[Row]]]:
    starts = sorted({row.at - row.at % step.size for row in rows})
    return [(at, at + step.size, [row for row in rows if at <= row.at < at + step.size]) for at in starts]


def _sessions(step: Windows, rows: list[Row]) -> list[tuple[int, int, list[Row]]]:
    found: list[tuple[int, int, list[Row]]] = []
    for row in rows:
        if found and (row.at < found[-1][1] or (row.at == found[-1][1] and step.touching == "merge")):
            start, _, mine = found.pop()
            found.append((start, row.at + step.gap, [*mine, row]))
        else:
            found.append((row.at, row.at + step.gap, [row]))
    return found


_MODELS: Final[dict[type[Step], Callable[..., Shown]]] = {
    Join: _join,
    AsOf: _as_of,
    Dedup: _dedup,
    Match: _match,
    Process: _process,
    Windows: _windows,
}
