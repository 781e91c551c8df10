"""A slow, obvious matcher: one key's rows in order, one row at a time, one way after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """A row of a stream; odd and even ids are in partitions of their own, in the order of ids."""

    key: str | None
    ts: int
    v: int | None
    w: int
    id: int

    @property
    def partition(self) -> str:
        return str(self.id % 2)


Taken = tuple[tuple[int, Row], ...]
"""The rows of a match so far, each with the number of its step."""
Holds = Callable[[Row, dict[str, Row]], bool]
"""Whether a row meets a condition, given the row that each step took last."""


@dataclass(frozen=True)
class Step:
    """A step as text, and what it means."""

    name: str
    sql: str
    holds: Holds
    least: int = 1
    most: int | None = 1
    is_optional: bool = False


@dataclass(frozen=True)
class Sought:
    """A pattern as text, and what it means."""

    steps: tuple[Step, ...]
    within_ms: int
    is_strict: bool = False
    is_past_last: bool = True
    is_absence: bool = False
    conditions: dict[str, str] = field(default_factory=dict)

    def matches(self, rows: Sequence[Row]) -> list[Taken]:
        """Return the matches of every key; of an absence, its rows that nothing followed."""
        keys = sorted({row.key for row in rows}, key=str)
        return [match for key in keys for match in self._of_one_key([row for row in rows if row.key == key])]

    def _of_one_key(self, rows: list[Row]) -> list[Taken]:
        rows = sorted(rows, key=lambda row: (row.ts, row.partition, row.id))
        found: list[Taken] = []
        at = 0
        while at < len(rows):
            match = self._from(rows, at)
            if self.is_absence:
                if match is None and self.steps[0].holds(rows[at], {}):
                    found.append(((0, rows[at]),))
            elif match is not None:
                found.append(match)
                if self.is_past_last:
                    at = rows.index(match[-1][1])
            at += 1
        return found

    def _from(self, rows: list[Row], at: int) -> Taken | None:
        """Return the match that begins at a row."""
        first = rows[at]
        within = [row for row in rows[at + 1 :] if row.ts <= first.ts + self.within_ms]
        for step in self._options(-1, 0):
            if self.steps[step].holds(first, {}):
                match = self._rest(within, step, 1, ((step, first),))
                if match is not None:
                    return match
        return None

    def _rest(self, rows: list[Row], step: int, count: int, taken: Taken) -> Taken | None:
        """Return the match that has taken `taken`, the last `count` rows by `step`, and may take more of `rows`."""
        last = {self.steps[number].name: row for number, row in taken}
        for at, row in enumerate(rows):
            options = [each for each in self._options(step, count) if self.steps[each].holds(row, last)]
            for option in options:
                more = count + 1 if option == step else 1
                match = self._rest(rows[at + 1 :], option, more, (*taken, (option, row)))
                if match is not None:
                    return match
            if options or self.is_strict:
                break
        is_whole = count >= self.steps[step].least and all(later.is_optional for later in self.steps[step + 1 :])
        return taken if is_whole else None

    def _options(self, step: int, count: int) -> list[int]:
        """Return the steps that may take the next row, the preferred one first."""
        found = []
        if step >= 0:
            most = self.steps[step].most
            if most is None or count < most:
                found.append(step)
            if count < self.steps[step].least:
                return found
        for later in range(step + 1, len(self.steps)):
            found.append(later)
            if not self.steps[later].is_optional:
                break
        return found
