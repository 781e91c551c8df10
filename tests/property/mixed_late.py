"""Steps whose results depend on when rows come, if some come behind the watermark: sessions and as-of joins.

A session that is over is forgotten; a row that comes behind the watermark, but is still part of a session that is not
over, does not bring back the one before it. A version that comes behind the watermark is not seen by the rows that have
been shown. What these steps showed is taken as given, after it was checked to follow from rows on time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.property.mixed_model import pair
from tests.property.mixed_places import of_window
from tests.property.mixed_steps import AsOf, Step, Windows
from tests.property.mixed_values import KeyKind, Row


def depends_on_arrival(step: Step) -> bool:
    """Return whether the step's results depend on when rows come."""
    return isinstance(step, AsOf) or (isinstance(step, Windows) and step.gap > 0)


def as_shown(step: Step, name: str, inputs: Sequence[list[Row]], kind: KeyKind, got: Counter[Any]) -> list[Row]:
    """Return what a step showed, with its places."""
    if isinstance(step, AsOf):
        return _joined(step, name, inputs, got)
    assert isinstance(step, Windows)
    found = []
    for shown in got.elements():
        row = Row(*shown)
        start = int(row.tag[1:].partition(" ")[0])
        found.append(replace(row, place=of_window(step, name, kind, row.key(step.key), (start, row.at + 1))))
    return found


def _joined(step: AsOf, name: str, inputs: Sequence[list[Row]], got: Counter[Any]) -> list[Row]:
    left, right = inputs
    possible = {
        (made := pair(step, name, mine, None, mine.at)).shown: (made, mine) for mine in left if step.how == "left"
    }
    for mine in left:
        for version in right:
            is_near = version.at <= mine.at and (step.ttl is None or mine.at - version.at <= step.ttl)
            key = mine.key(step.key)
            if is_near and key is not None and key == version.key(step.key) and not (step.deletes and version.v == 3):
                made = pair(step, name, mine, version, mine.at)
                possible[made.shown] = (made, mine)
    assert got.keys() <= possible.keys(), f"rows joined with no version of theirs: {got.keys() - possible.keys()}"
    found = [possible[shown] for shown in got.elements()]
    rows = Counter(mine.shown for _, mine in found)
    every = Counter(row.shown for row in left)
    assert rows == every if step.how == "left" else rows <= every, "a row is shown twice, or not at all"
    return [made for made, _ in found]
