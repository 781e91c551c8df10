"""What must be true of a stream that has gone through a step to its end, on whatever engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

import polars as pl

from slackwater.base.times import EPOCH
from slackwater.pipeline import Pipeline
from slackwater.testing import Harness
from slackwater.windows import SessionWindow
from tests.property.model import Model, Place
from tests.property.streams import Fate, Record, Setup

ACCOUNTS: Final = ("on_time", "refired", "late", "no_window", "ignored")
"""The counts of a step of which every row that reaches it is in exactly one."""


class Counted(Harness):
    """A harness that adds up the counts of each step over all batches."""

    def __init__(self, pipeline: Pipeline, **options: Any) -> None:  # noqa: ANN401  as the harness takes them
        super().__init__(pipeline, **options)
        self.counts: dict[str, Counter[str]] = {}

    def run_batch(self) -> dict[str, pl.DataFrame]:
        outputs = super().run_batch()
        for step, counts in self.last.counts.items():
            self.counts.setdefault(step, Counter()).update(counts)
        return outputs


@dataclass
class Run:
    """A stream that went through a step to its end, and what the model says of it."""

    setup: Setup
    model: Model
    results: pl.DataFrame
    late: pl.DataFrame
    dead: pl.DataFrame
    counts: Counter[str] = field(default_factory=Counter)
    stream: Counter[str] = field(default_factory=Counter)


def ids(frame: pl.DataFrame) -> list[int]:
    return [item for row in frame["ids"].to_list() for item in row]


def place(row: dict[str, object]) -> Place:
    """Return the window of a result row, in milliseconds."""
    start, end = row["window_start"], row["window_end"]
    bounds = [None if moment is None else round((moment - EPOCH).total_seconds() * 1000) for moment in (start, end)]  # type: ignore[operator]  # rows have no types
    return (row["key"], *bounds)  # type: ignore[return-value]  # the same


def check_accounts(done: Run, records: Sequence[Record]) -> None:
    """Check that every record is in exactly one account: shown, late, dead, or filtered."""
    by_fate = {fate: [record for record in records if record.fate == fate] for fate in get_args(Fate)}
    buried = by_fate["broken"] + by_fate["no_time"] + by_fate["ahead"]
    late, shown = done.late["id"].to_list(), set(ids(done.results))
    reasons = Counter(done.dead["reason"].to_list())

    assert sorted(done.dead["payload"].to_list()) == sorted(record.payload for record in buried)
    assert reasons["no_event_time"] == len(by_fate["no_time"])
    assert reasons["ahead_of_clock"] == len(by_fate["ahead"])
    assert len(late) == len(set(late))
    assert not shown & set(late)
    assert shown | set(late) <= {record.id for record in by_fate["good"]}
    missing = {record.id for record in by_fate["good"]} - shown - set(late) - set(done.model.no_window)
    assert not (missing and done.setup.shows_all), f"neither shown nor late: {missing}"


def check_standing(done: Run) -> None:
    """Check that what stands in the end is what the model says every window took."""
    expected = {place: sorted(found) for place, found in done.model.windows.items()}
    rows = done.results.to_dicts()
    if done.setup.accumulation == "discarding":
        if isinstance(done.setup.window, SessionWindow):
            assert sorted(ids(done.results)) == sorted(done.model.accepted)
            return
        taken: dict[Place, list[int]] = {}
        for row in rows:
            taken.setdefault(place(row), []).extend(row["ids"])
        assert {at: sorted(found) for at, found in taken.items()} == expected
        return
    stands: dict[Place, list[int]] = {}
    for row in rows:
        assert row["n"] == len(row["ids"])
        if row["is_retraction"]:
            assert stands.pop(place(row)) == sorted(row["ids"])
        else:
            if done.setup.accumulation == "retracting":
                assert place(row) not in stands
            stands[place(row)] = sorted(row["ids"])
    if isinstance(done.setup.window, SessionWindow) and done.setup.accumulation == "accumulating":
        # What a session showed before it grew is never withdrawn in this mode.
        stands = {at: found for at, found in stands.items() if at in expected}
    assert stands == expected
