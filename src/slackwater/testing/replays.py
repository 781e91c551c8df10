"""Replays: a conformance case fed to an engine whole, row by row, or in random batches, and compared step by step.

How a step's rows are split into batches must not change which rows are late, nor the result at the end of the step. It
does change how many panes lead to that result, because count triggers are evaluated once per batch. When batches are
split, panes of count triggers are therefore compared by their net result, and all others exactly.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, Protocol

from slackwater.testing.cases import Case, Event, Row

Replay = Literal["whole", "rows", "random"]
REPLAYS: Final[tuple[Replay, ...]] = ("whole", "rows", "random")
_RANDOM_REPLAYS: Final = 3


class Runner(Protocol):
    """An engine that holds one case's pipeline, its state and its clock."""

    def step(
        self, events: Sequence[Event], *, watermark_ms: int | None, processing_time_ms: int | None, restart: bool
    ) -> StepOutput:
        """Run one step: restart if `restart` is set, add the rows, move processing time, move the watermark."""

    def close(self) -> None:
        """Release the engine's resources."""


@dataclass
class StepOutput:
    """The results and late rows of one step, in order of emission."""

    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A step whose output differs from what the case expects."""

    replay: Replay
    step: int
    what: Literal["rows", "late"]
    expected: list[Row]
    actual: list[Row]

    def __str__(self) -> str:
        lines = [f"step {self.step}, {self.what} ({self.replay} replay)"]
        for title, rows in (("expected", self.expected), ("actual", self.actual)):
            lines += [f"  {title}:", *(f"    {json.dumps(row)}" for row in rows)] if rows else [f"  {title}: nothing"]
        return "\n".join(lines)


def depends_on_batches(case: Case) -> str | None:
    """Return why the case's panes depend on how its rows are split into batches, or None."""
    params = case["params"]
    if case["operator"] != "window_agg":
        meets_late = params.get("semantics", {}).get("late_join_rows") == "process"
        return "rows that are too late to be kept meet if they come in one batch" if meets_late else None
    counts = _count_parts(params)
    if any(part["n"] > 1 or not part.get("repeat", True) for part in counts.values()):
        return "its count trigger looks once a batch"
    if not counts:
        return None
    accumulation = params.get("accumulation", "accumulating")
    if params["window"]["type"] == "session" and accumulation != "accumulating":
        # Between two rows, a session may be complete and emit a pane, and the second row reopens it.
        return "a growing session shows panes that the whole batch never sees"
    if accumulation == "discarding" and params.get("agg", "count") not in _JOIN:
        return f"discarded panes of {params['agg']} cannot be put together again"
    return None


def replay(case: Case, start: Callable[[], Runner], how: Replay) -> list[Mismatch]:
    """Replay `case` on runners created by `start`; return the mismatches."""
    if how == "whole":
        return _replay(case, start(), how, lambda events: [events])
    if how == "rows":
        return _replay(case, start(), how, lambda events: [[event] for event in events])
    mismatches: list[Mismatch] = []
    for number in range(_RANDOM_REPLAYS):
        dice = random.Random(f"{case['id']}/{number}")  # noqa: S311  the same splits in every run
        mismatches += _replay(case, start(), how, partial(_cut, dice=dice))
    return mismatches


Cut = Callable[[Sequence[Event]], list[Sequence[Event]]]


def _replay(case: Case, runner: Runner, how: Replay, cut: Cut) -> list[Mismatch]:
    found = []
    for number, step in enumerate(case["steps"]):
        got = StepOutput()
        restart = step.get("restart", False)
        *first, last = cut(step["events"]) or [()]
        for events in first:
            part = runner.step(events, watermark_ms=None, processing_time_ms=None, restart=restart)
            got.rows += part.rows
            got.late += part.late
            restart = False
        part = runner.step(
            last,
            watermark_ms=step.get("watermark_ms"),
            processing_time_ms=step.get("processing_time_ms"),
            restart=restart,
        )
        got.rows += part.rows
        got.late += part.late
        is_equal = _equal(step["expect"], got.rows) if how == "whole" else _equal_in_effect(case, step, got.rows)
        if not is_equal:
            found.append(Mismatch(replay=how, step=number, what="rows", expected=step["expect"], actual=got.rows))
        if not _equal(step["late"], got.late):
            found.append(Mismatch(replay=how, step=number, what="late", expected=step["late"], actual=got.late))
    return found


def _cut(events: Sequence[Event], dice: random.Random) -> list[Sequence[Event]]:
    inner = sorted(dice.sample(range(1, len(events)), dice.randint(0, len(events) - 1))) if events else []
    return [events[start:end] for start, end in zip([0, *inner], [*inner, len(events)], strict=True)]


def canonical(value: Any) -> str:  # noqa: ANN401  JSON
    """Return a text that is the same for equal rows: lists are multisets, 2 is 2.0, and 0.1 + 0.2 is 0.3."""

    def normal(part: Any) -> Any:  # noqa: ANN401  any value of a row
        if isinstance(part, dict):
            return {name: normal(inner) for name, inner in part.items()}
        if isinstance(part, list):
            return sorted((normal(inner) for inner in part), key=lambda inner: json.dumps(inner, sort_keys=True))
        if isinstance(part, float):
            rounded = float(f"{part:.12g}")
            return int(rounded) if rounded.is_integer() else rounded
        return part

    return json.dumps(normal(value), sort_keys=True)


def _equal(expected: list[Row], actual: list[Row]) -> bool:
    return Counter(map(canonical, expected)) == Counter(map(canonical, actual))


def _equal_in_effect(case: Case, step: Case, actual: list[Row]) -> bool:
    """Return whether `actual` has the net result that the step expects, however many panes led to it."""
    params, expected = case["params"], step["expect"]
    if case["operator"] != "window_agg":
        return _equal(expected, actual)
    made_by_count = _count_parts(params)
    if not _equal(*([row for row in rows if row.get("pane") not in made_by_count] for rows in (expected, actual))):
        return False
    expected, actual = ([row for row in rows if row.get("pane") in made_by_count] for rows in (expected, actual))
    accumulation = params.get("accumulation", "accumulating")
    if accumulation == "accumulating_retracting":
        return _net(expected) == _net(actual)
    if accumulation == "discarding":
        return _joined(expected, params.get("agg", "count")) == _joined(actual, params.get("agg", "count"))
    last_expected, last_actual = _last(expected), _last(actual)
    if params["window"]["type"] == "session":
        # A growing session emits shorter versions of itself, which do not occur in a whole batch.
        return last_expected.items() <= last_actual.items()
    return last_expected == last_actual


def _count_parts(params: Case) -> dict[str, Any]:
    """Return the count triggers of a case by the kind of pane they fire."""
    trigger = params.get("trigger") or {"type": "after_watermark"}
    one = {"type": "count", "n": 1}
    if trigger["type"] == "count":
        return {"early": trigger, "late": trigger}
    parts = {"early": trigger.get("early"), "late": trigger.get("late", one)}
    return {pane: part for pane, part in parts.items() if part and part["type"] == "count"}


def _window(row: Row) -> str:
    return canonical([row["key"], row["window_start_ms"], row["window_end_ms"]])


def _last(rows: list[Row]) -> dict[str, str]:
    return {f"{_window(row)} {row['pane']}": canonical(row) for row in rows}


def _net(rows: list[Row]) -> dict[str, int]:
    net: Counter[str] = Counter()
    for row in rows:
        net[f"{_window(row)} {canonical(row['value'])}"] += -1 if row["retract"] else 1
    return {shown: number for shown, number in net.items() if number}


def _joined(rows: list[Row], agg: str) -> dict[str, str]:
    values: dict[str, list[Any]] = {}
    for row in rows:
        values.setdefault(f"{_window(row)} {row['pane']}", []).append(row["value"])
    return {place: canonical(_JOIN[agg](found)) for place, found in values.items()}


def _known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


_JOIN: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "count": sum,
    "sum": lambda values: sum(_known(values)) if _known(values) else None,
    "max": lambda values: max(_known(values), default=None),
    "min": lambda values: min(_known(values), default=None),
    "list": lambda values: [item for value in values for item in value],
}
