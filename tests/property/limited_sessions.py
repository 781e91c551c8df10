"""What sessions with a maximum length must hold, whatever they showed on the way: a greedy cut of their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.property.chain_definitions import Row, Step
from tests.property.chain_model import Pane, Time

Place = tuple[object, int, int]
"""A key's window: key, start, end."""


def greedy_cut(rows: Iterable[Row], step: Step) -> list[tuple[Place, list[Row]]]:
    """Return the sessions of rows: in time order, a session takes what is near it and before its maximum."""
    window, found = step.window, list[tuple[Place, list[Row]]]()
    rows = list(rows)
    for key in {row.key for row in rows}:
        session: list[Row] = []
        for row in [*sorted((row for row in rows if row.key == key), key=lambda row: row.ts), None]:
            if session:
                reach, limit = session[-1].ts + window.gap, session[0].ts + window.max_length
                near = row is not None and (row.ts < reach or (row.ts == reach and window.touching == "merge"))
                if row is None or not near or row.ts >= limit:
                    found.append(((key, session[0].ts, min(reach, limit)), session))
                    session = []
            if row is not None:
                session = [*session, row]
    return found


@dataclass
class LimitedSessions:
    """Follows the sessions of one step: which rows it remembers, and what was forgotten in which session."""

    step: Step
    remembered: list[Row] = field(default_factory=list)
    final: dict[Place, list[str]] = field(default_factory=dict)
    known: dict[str, Row] = field(default_factory=dict)

    def batch(self, rows: list[Row], late: set[str], time: Time) -> None:
        """Take a batch's rows; `late` are the tags of those that the step found late, which must be right."""
        if time.is_first:
            self._forget(time.watermark)
        self.known |= {row.tag: row for row in rows}
        for (_, _, end), session in greedy_cut([*self.remembered, *rows], self.step):
            for row in session:
                is_old = row.ts + self.step.window.gap + self.step.lateness <= time.judge
                is_late = is_old and end + self.step.lateness <= time.judge
                assert row not in rows or (row.tag in late) == is_late, f"{row} is judged wrongly at {time}"
        self.remembered += [row for row in rows if row.tag not in late]
        if not time.is_first:
            self._forget(time.watermark)

    def _forget(self, watermark: int) -> None:
        for place, session in greedy_cut(self.remembered, self.step):
            if place[2] + self.step.lateness <= watermark:
                self.final.setdefault(place, []).extend(row.tag for row in session)
                self.remembered = [row for row in self.remembered if row not in session]

    def check(self, panes: list[Pane]) -> None:
        """Check all that the step has shown, in order, after the end of time."""
        for pane in panes:
            for tag in pane.tags:
                row = self.known[tag]
                assert row.key == pane.key, f"{row} in {pane}"
                assert pane.start <= row.ts < pane.end, f"{row} in {pane}"
            assert pane.end - pane.start <= self.step.window.max_length, str(pane)
        trigger = self.step.trigger
        if trigger.once or trigger.is_final or self.step.on_close == "discard":
            return
        if self.step.accumulation == "discarding":
            shown = sorted(tag for pane in panes for tag in pane.tags)
            assert shown == sorted(tag for tags in self.final.values() for tag in tags)
            return
        expected = {place: tuple(sorted(tags)) for place, tags in self.final.items()}
        stands = standing(panes)
        if self.step.accumulation == "accumulating":  # what a session showed before its bounds moved stays
            stands = {place: tags for place, tags in stands.items() if place in expected}
        assert stands == expected


def standing(panes: Iterable[Pane]) -> dict[Place, tuple[str, ...]]:
    """Return what a reader who follows the panes holds in the end; a retraction must withdraw what stands."""
    stands: dict[Place, tuple[str, ...]] = {}
    for pane in panes:
        place = (pane.key, pane.start, pane.end)
        if pane.is_retraction:
            assert stands.pop(place, None) == pane.tags, f"{pane} withdraws what does not stand"
        else:
            stands[place] = pane.tags
    return stands
